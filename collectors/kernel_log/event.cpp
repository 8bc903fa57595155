#include "collectors/kernel_log/event.h"

#include <algorithm>
#include <array>

#include "exporter/text.h"

namespace apu {
namespace {

constexpr std::array kKinds{EventKind::kSvmMappingFailed};

/// Removes "0000:c5:00.0: " and returns the address; empty, and nothing removed, if there is none.
std::string_view take_pci_address(std::string_view& text) {
  constexpr std::string_view kShape = "hhhh:hh:hh.o";
  const auto fits = [](char shape, char c) {
    const bool hex = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
    return shape == 'h' ? hex : shape == 'o' ? c >= '0' && c <= '7' : c == shape;
  };
  const std::string_view address = text.substr(0, kShape.size());
  const bool matches = address.size() == kShape.size() &&
                       std::equal(kShape.begin(), kShape.end(), address.begin(), fits);
  std::string_view rest = text;
  rest.remove_prefix(std::min(kShape.size(), rest.size()));
  if (!matches || !consume(rest, ": ")) {
    return {};
  }
  text = rest;
  return address;
}

/// Removes what may follow the device's name.
void skip_second_prefix(std::string_view& text) {
  if (consume(text, "[drm] ")) {
    consume(text, "*ERROR* ");
  } else {
    consume(text, "amdgpu: ");
  }
}

}  // namespace

std::span<const EventKind> all_event_kinds() {
  return kKinds;
}

std::string_view to_label(EventKind kind) {
  switch (kind) {
    case EventKind::kSvmMappingFailed:
      break;
  }
  return "svm_mapping_failed";
}

std::optional<DriverMessage> strip_driver_prefix(std::string_view message) {
  std::string_view rest = message;
  if (consume(rest, "amdgpu: ")) {
    return DriverMessage{{}, rest};
  }
  if (consume(rest, "kfd kfd: ")) {
    skip_second_prefix(rest);
    return DriverMessage{{}, rest};
  }
  if (!consume(rest, "amdgpu ")) {
    return std::nullopt;
  }
  const std::string_view gpu = take_pci_address(rest);
  if (gpu.empty()) {
    return std::nullopt;
  }
  skip_second_prefix(rest);
  return DriverMessage{gpu, rest};
}

std::optional<KernelEvent> classify(std::string_view message) {
  const auto driver = strip_driver_prefix(message);
  if (driver &&
      driver->text.starts_with("SVM mapping failed, exceeds resident system memory limit")) {
    return KernelEvent{EventKind::kSvmMappingFailed, driver->gpu};
  }
  return std::nullopt;
}

}  // namespace apu
