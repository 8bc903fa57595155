#include "collectors/kernel_log/unit_event.h"

#include <algorithm>

#include "collectors/seats/place.h"
#include "exporter/text.h"

namespace apu {
namespace {

bool is_unit_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view(":-_.\\@").find(c) != std::string_view::npos;
}

bool is_sigkill(std::string_view text) {
  return text.starts_with("Killing process ") && text.ends_with(" with signal SIGKILL.");
}

/// "State 'stop-sigterm' timed out. Killing."; states of stopping only, since a start may time out
/// as well.
bool is_stop_timeout(std::string_view text) {
  if (!consume(text, "State '")) {
    return false;
  }
  const size_t quote = text.find('\'');
  const std::string_view state = text.substr(0, quote);
  const bool stopping = state.starts_with("stop") || state.starts_with("final");
  return stopping && quote != std::string_view::npos &&
         text.substr(quote).starts_with("' timed out.");
}

}  // namespace

std::optional<UnitEvent> parse_unit_event(std::string_view message, std::string_view user) {
  const size_t colon = message.find(": ");
  if (colon == std::string_view::npos || colon == 0 ||
      message.substr(0, colon).find(' ') != std::string_view::npos) {
    return std::nullopt;
  }
  const std::string_view text = trim(message.substr(colon + 2));
  UnitEvent event;
  if (is_stop_timeout(text)) {
    event.kind = UnitEventKind::kStopTimeout;
  } else if (!is_sigkill(text)) {
    return std::nullopt;
  }
  const std::string_view name = without_service(message.substr(0, colon));
  if (!std::all_of(name.begin(), name.end(), is_unit_character)) {
    return event;  // a publisher's "<unit>"
  }
  event.unit = user.empty() ? std::string(name) : std::string(user) + "/" + std::string(name);
  return event;
}

}  // namespace apu
