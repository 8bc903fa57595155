#include "collectors/parsers/fdinfo.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "collectors/parsers/gpu_devices.h"
#include "exporter/text.h"

namespace apu {
namespace {

constexpr std::string_view kDriver = "amdgpu";  // whole: the NPU's is amdxdna_accel_driver

// Of 48 bits; no client has more.
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 48;

using Number = std::optional<std::uint64_t>;

struct Field {
  std::string_view prefix;
  Number FdinfoPool::*number;
};

constexpr std::string_view kActive = "drm-active-";

constexpr std::array kFields{
    Field{"drm-resident-", &FdinfoPool::resident},   Field{"drm-memory-", &FdinfoPool::placed},
    Field{"drm-total-", &FdinfoPool::total},         Field{"drm-shared-", &FdinfoPool::shared},
    Field{"drm-purgeable-", &FdinfoPool::purgeable}, Field{kActive, &FdinfoPool::active},
    Field{"amd-evicted-", &FdinfoPool::evicted}};

constexpr std::string_view kRequested = "amd-requested-";  // repeats drm-total-*
constexpr std::string_view kOldSuffix = " mem";

std::optional<std::uint64_t> bytes_per(std::string_view unit) {
  if (unit.empty()) {
    return 1;
  }
  if (unit == "KiB" || unit == "kB") {
    return 1024;
  }
  return unit == "MiB" ? std::optional<std::uint64_t>(1024 * 1024) : std::nullopt;
}

Number parse_bytes(std::string_view value) {
  std::string_view rest = value;
  const auto number = take_unsigned(rest);
  const auto unit = bytes_per(trim(rest));
  const bool fits = number && unit && *number <= kMostBytes / *unit;
  return fits ? Number(*number * *unit) : std::nullopt;
}

class Parser {
 public:
  Fdinfo parse(std::string_view text) {
    // A line that was cut may have been cut inside its number.
    const std::string_view whole = text.substr(0, text.rfind('\n') + 1);
    for_each_line(whole, [this](std::string_view line) {
      ++line_number_;
      const size_t colon = line.find(':');
      if (colon != std::string_view::npos) {
        line_ = line;
        take(trim(line.substr(0, colon)), trim(line.substr(colon + 1)));
      }
    });
    ++line_number_;
    if (whole.size() != text.size()) {
      problem("the line has no end");
    }
    finish();
    return std::move(info_);
  }

 private:
  void take(std::string_view key, std::string_view value) {
    if (key == "drm-driver") {
      driver_ = value;
    } else if (key == "drm-pdev" || key == "pdev") {
      info_.gpu = value;
    } else if (key == "drm-client-id") {
      set(info_.client_id, parse_number<std::uint64_t>(value));
    } else if (key == "pasid") {
      info_.pasid = parse_number<std::uint64_t>(value);
    } else if (key.ends_with("-visible-vram")) {
      walks_objects_ = true;
    } else {
      take_memory(key, value);
    }
  }

  void take_memory(std::string_view key, std::string_view value) {
    const bool old = key.ends_with(kOldSuffix);
    const size_t name_at = old ? 0 : key.rfind('-') + 1;
    const std::string_view name =
        key.substr(name_at, key.size() - (old ? kOldSuffix.size() : 0) - name_at);
    FdinfoPool* const target = pool(name);
    if (target == nullptr) {
      return;  // others hold no memory that we show
    }
    if (old) {
      old_layout_ = true;
      set(target->placed, parse_bytes(value));
    } else {
      take_field_of(*target, key.substr(0, name_at), value);
    }
  }

  void take_field_of(FdinfoPool& target, std::string_view prefix, std::string_view value) {
    if (prefix == kRequested) {
      set_requested(target, value);
      return;
    }
    walks_objects_ = walks_objects_ || prefix == kActive;
    for (const Field& field : kFields) {
      if (prefix == field.prefix) {
        set(target.*field.number, parse_bytes(value));
        return;
      }
    }
  }

  FdinfoPool* pool(std::string_view name) {
    if (name == "vram") {
      return &info_.vram;
    }
    if (name == "gtt") {
      return &info_.gtt;
    }
    return name == "cpu" ? &info_.cpu : nullptr;
  }

  void set(Number& target, Number value) {
    if (!value) {
      problem(fmt::format("no number that can be right in '{}'", line_));
    } else if (target) {
      problem(fmt::format("there twice: '{}'", line_));
    } else {
      target = value;
    }
  }

  void set_requested(FdinfoPool& target, std::string_view value) {
    Number requested;
    set(requested, parse_bytes(value));
    if (!target.total) {
      target.total = requested;
    }
  }

  void finish() {
    if (driver_.empty() && !old_layout_) {
      info_ = Fdinfo();
    } else if (!driver_.empty() && driver_ != kDriver) {
      info_ = Fdinfo();
      info_.kind = FdinfoKind::kForeign;
    } else {
      info_.kind = FdinfoKind::kAmdgpu;
      info_.lock_free = (info_.gtt.resident || info_.vram.resident) && !walks_objects_;
      if (!is_pci_address(info_.gpu)) {
        info_.gpu.clear();  // it becomes a label
      }
      if (info_.gpu.empty() || (!info_.client_id && !(old_layout_ && info_.pasid))) {
        problem("a client without PCI address or id");
      }
    }
  }

  void problem(std::string what) { info_.problems.push_back({line_number_, std::move(what)}); }

  Fdinfo info_;
  std::string_view driver_;
  std::string_view line_;
  int line_number_ = 0;
  bool old_layout_ = false;
  bool walks_objects_ = false;
};

}  // namespace

std::optional<std::uint64_t> memory_of(const FdinfoPool& pool) {
  return pool.resident ? pool.resident : pool.placed;
}

Fdinfo parse_fdinfo(std::string_view text) {
  return Parser().parse(text);
}

}  // namespace apu
