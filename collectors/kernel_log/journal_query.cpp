#include "collectors/kernel_log/journal_query.h"

#include <fmt/format.h>

#include <cstdint>

#include "exporter/text.h"

namespace apu {
namespace {

constexpr std::string_view kUnreadMark = "next:";

std::string to_text(const JournalPosition& position) {
  return std::string(position.unread ? kUnreadMark : "") + position.cursor;
}

JournalPosition to_position(std::string_view text) {
  const bool unread = consume(text, kUnreadMark);
  return {std::string(text), unread};
}

bool set_stamp(std::optional<std::chrono::microseconds>& stamp, std::string_view text) {
  const auto number = parse_number<std::int64_t>(text);
  if (number) {
    stamp = std::chrono::microseconds(*number);
  }
  return number.has_value();
}

bool apply(JournalQuery& query, std::string_view argument) {
  if (consume(argument, "root=")) {
    query.place = {argument, true};
  } else if (consume(argument, "directory=")) {
    query.place = {argument, false};
  } else if (consume(argument, "boot=")) {
    query.boot = argument;
  } else if (consume(argument, "kernel-at=")) {
    query.kernel_position = to_position(argument);
  } else if (consume(argument, "other-at=")) {
    query.other_position = to_position(argument);
  } else if (consume(argument, "after=")) {
    return set_stamp(query.after, argument);
  } else if (consume(argument, "until=")) {
    return set_stamp(query.until, argument);
  } else if (argument == "kernel") {
    query.kernel = true;
  } else if (argument == "managers") {
    query.managers = true;
  } else if (argument == "journald") {
    query.journald = true;
  } else {
    return false;
  }
  return true;
}

}  // namespace

std::vector<std::filesystem::path> directories_of(const JournalPlace& place) {
  if (!place.is_root) {
    return {place.directory};
  }
  return {place.directory / "var/log/journal", place.directory / "run/log/journal"};
}

std::vector<std::string> to_arguments(const JournalQuery& query) {
  std::vector<std::string> arguments{std::string(kJournalReaderOption)};
  arguments.push_back((query.place.is_root ? "root=" : "directory=") +
                      query.place.directory.string());
  const auto add = [&](bool wanted, std::string argument) {
    if (wanted) {
      arguments.push_back(std::move(argument));
    }
  };
  add(!query.boot.empty(), "boot=" + query.boot);
  add(query.kernel, "kernel");
  add(query.managers, "managers");
  add(query.journald, "journald");
  if (query.after) {
    arguments.push_back(fmt::format("after={}", query.after->count()));
  }
  if (query.until) {
    arguments.push_back(fmt::format("until={}", query.until->count()));
  }
  add(!query.kernel_position.cursor.empty(), "kernel-at=" + to_text(query.kernel_position));
  add(!query.other_position.cursor.empty(), "other-at=" + to_text(query.other_position));
  return arguments;
}

Result<JournalQuery> parse_journal_query(std::span<const char* const> arguments) {
  JournalQuery query;
  for (const std::string_view argument : arguments) {
    if (argument != kJournalReaderOption && !apply(query, argument)) {
      return Error{ErrorKind::kMalformed, fmt::format("no argument of a reader: '{}'", argument)};
    }
  }
  return query;
}

}  // namespace apu
