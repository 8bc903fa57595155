#include "collectors/parsers/drm_minors.h"

#include <fmt/format.h>

#include "exporter/text.h"

namespace apu {
namespace {

constexpr const char* kClass = "class/drm";
constexpr std::uint32_t kDrmMajor = 226;

DrmDriver driver_at(const FileRoot& sysfs, const std::string& node) {
  const std::string device = fmt::format("{}/{}/device", kClass, node);
  if (const auto driver = sysfs.link_name(device + "/driver")) {
    return *driver == "amdgpu" ? DrmDriver::kAmdgpu : DrmDriver::kOther;
  }
  // Partitions are devices that amdgpu makes itself, without a driver's binding.
  const auto name = sysfs.link_name(device);
  return name && name->starts_with("amdgpu_xcp") ? DrmDriver::kAmdgpu : DrmDriver::kUnknown;
}

/// Whether the link can be that of a device node, so that it is worth a look at its number.
bool may_be_node(std::string_view link) {
  return link.starts_with("/dev/") || link.find("/dri/") != std::string_view::npos;
}

}  // namespace

std::optional<std::uint32_t> parse_drm_node_name(std::string_view name) {
  return consume(name, "renderD") || consume(name, "card") ? parse_number<std::uint32_t>(name)
                                                           : std::nullopt;
}

DrmMinors DrmMinors::read(const FileRoot& sysfs) {
  DrmMinors minors;
  const auto nodes = sysfs.list(kClass);
  for (const std::string& node : nodes ? *nodes : std::vector<std::string>()) {
    const auto minor = parse_drm_node_name(node);
    if (!minor) {
      continue;
    }
    const DrmDriver driver = driver_at(sysfs, node);
    minors.drivers_[*minor] = driver;
    const auto same_device = sysfs.list(fmt::format("{}/{}/device/drm", kClass, node));
    for (const std::string& other : same_device ? *same_device : std::vector<std::string>()) {
      if (const auto other_minor = parse_drm_node_name(other)) {
        minors.drivers_.try_emplace(*other_minor, driver);
      }
    }
  }
  return minors;
}

DrmDriver DrmMinors::driver_of(std::uint32_t minor) const {
  const auto found = drivers_.find(minor);
  return found == drivers_.end() ? DrmDriver::kUnknown : found->second;
}

std::optional<std::uint32_t> drm_minor_of(const FileRoot& procfs, std::string_view descriptor,
                                          std::string_view link) {
  if (!may_be_node(link)) {
    return std::nullopt;
  }
  if (const auto device = procfs.device_number(descriptor)) {
    return device->major == kDrmMajor ? std::optional(device->minor) : std::nullopt;
  }
  const size_t name_at = link.rfind("/dri/");
  const std::string_view name = name_at == std::string_view::npos
                                    ? ""
                                    : link.substr(name_at + std::string_view("/dri/").size());
  return parse_drm_node_name(name.substr(0, name.find(' ')));  // "renderD128 (deleted)"
}

}  // namespace apu
