#include "analysis/journal_lines.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "analysis/meaning.h"
#include "collectors/kernel_log/relevance.h"
#include "exporter/text.h"

namespace apu {
namespace {

using Fields = std::map<std::string, std::string, std::less<>>;

// The fields that are read; a journal entry has two dozen more.
constexpr std::string_view kWanted[] = {"MESSAGE",
                                        "PRIORITY",
                                        "SYSLOG_IDENTIFIER",
                                        "SYSLOG_FACILITY",
                                        "_TRANSPORT",
                                        "_PID",
                                        "_BOOT_ID",
                                        "_SYSTEMD_UNIT",
                                        "_SYSTEMD_USER_UNIT",
                                        "__REALTIME_TIMESTAMP",
                                        "__MONOTONIC_TIMESTAMP",
                                        "_SOURCE_MONOTONIC_TIMESTAMP"};

bool is_wanted(std::string_view name) {
  return std::find(std::begin(kWanted), std::end(kWanted), name) != std::end(kWanted);
}

std::string_view value_of(const Fields& fields, std::string_view name) {
  const auto found = fields.find(name);
  return found == fields.end() ? std::string_view() : std::string_view(found->second);
}

std::optional<std::chrono::microseconds> micros_of(const Fields& fields, std::string_view name) {
  constexpr std::uint64_t kLast = 9'000'000'000'000'000;
  const auto micros = parse_number<std::uint64_t>(value_of(fields, name));
  return micros && *micros < kLast
             ? std::optional(std::chrono::microseconds(static_cast<std::int64_t>(*micros)))
             : std::nullopt;
}

/// The id of the user whose manager runs in `unit`; empty for any other unit.
std::string_view user_of_manager(std::string_view unit) {
  return consume(unit, "user@") && unit.ends_with(".service")
             ? unit.substr(0, unit.size() - std::string_view(".service").size())
             : std::string_view();
}

/// Who wrote an entry, by the fields that journald itself adds.
Origin origin_of(const Fields& fields) {
  const std::string_view transport = value_of(fields, "_TRANSPORT");
  if (transport == "kernel") {
    const std::string_view facility = value_of(fields, "SYSLOG_FACILITY");
    return facility.empty() || facility == "0" ? Origin::kKernel : Origin::kUserspace;
  }
  if (transport == "driver") {
    return Origin::kJournald;
  }
  // Whatever a user runs stands below the unit of the user's manager.
  const std::string_view user_unit = value_of(fields, "_SYSTEMD_USER_UNIT");
  const bool manager = value_of(fields, "_PID") == "1" ||
                       (value_of(fields, "SYSLOG_IDENTIFIER") == "systemd" &&
                        (user_unit.empty() || user_unit == "init.scope") &&
                        !user_of_manager(value_of(fields, "_SYSTEMD_UNIT")).empty());
  return transport == "journal" && manager ? Origin::kServiceManager : Origin::kUserspace;
}

/// Takes entries of the journal, whatever they were printed as.
class EntryBuilder {
 public:
  explicit EntryBuilder(EntryCollector& entries) : entries_(entries) {}

  void take(const Fields& fields, std::uint64_t line) {
    const auto message = fields.find("MESSAGE");
    if (message == fields.end()) {
      return;  // entries of other kinds have none
    }
    LogEntry entry;
    entry.line = line;
    entry.origin = origin_of(fields);
    entry.level = parse_number<int>(value_of(fields, "PRIORITY"));
    fill_times(fields, entry);
    fill_boot(fields, entry);
    entry.user = user_of_manager(value_of(fields, "_SYSTEMD_UNIT"));
    if (entry.origin == Origin::kUserspace && is_oomd(fields)) {
      entry.tag = "systemd-oomd";
    }
    if (shall_keep(entry, message->second)) {
      entry.message = message->second;
      last_.reset();
      entries_.add(std::move(entry));
      return;
    }
    if (entry.origin == Origin::kKernel) {
      entries_.count_plain_kernel();
    } else if (entry.origin == Origin::kUserspace) {
      entries_.count_plain_user();
    }
    last_ = std::move(entry);
  }

  void finish() {
    if (last_) {
      entries_.add(*std::move(last_));
    }
  }

 private:
  static void fill_times(const Fields& fields, LogEntry& entry) {
    if (const auto micros = micros_of(fields, "__REALTIME_TIMESTAMP")) {
      entry.time = TimePoint(*micros);
    }
    // The journal's own stamp is when it took the record, the kernel's is when it was made.
    const auto source = micros_of(fields, "_SOURCE_MONOTONIC_TIMESTAMP");
    entry.since_boot = source ? source : micros_of(fields, "__MONOTONIC_TIMESTAMP");
  }

  /// An id of zeros is a mistake of journald: such an entry is of the boot of its neighbours.
  void fill_boot(const Fields& fields, LogEntry& entry) {
    const std::string_view id = value_of(fields, "_BOOT_ID");
    if (id.find_first_not_of('0') != std::string_view::npos) {
      boot_id_ = id;
    }
    entry.boot_id = boot_id_;
  }

  static bool is_oomd(const Fields& fields) {
    return value_of(fields, "SYSLOG_IDENTIFIER") == "systemd-oomd" &&
           value_of(fields, "_SYSTEMD_UNIT") == "systemd-oomd.service";
  }

  bool shall_keep(const LogEntry& entry, std::string_view message) {
    const bool new_boot = kept_boot_ != entry.boot_id;
    bool keep = new_boot;
    if (entry.origin == Origin::kKernel) {
      keep = keep || may_matter(message);
    } else if (entry.origin != Origin::kUserspace || !entry.tag.empty()) {
      keep = keep || manager_matters(message);
    }
    if (keep) {
      kept_boot_ = entry.boot_id;
    }
    return keep;
  }

  EntryCollector& entries_;
  std::string boot_id_;
  std::optional<std::string> kept_boot_;
  std::optional<LogEntry> last_;  // not kept, but dates the log's end
};

// --- json

/// The bytes that a JSON array of numbers stands for.
std::optional<std::string> to_bytes(const nlohmann::json& array) {
  constexpr int kMaxByte = 255;
  std::string bytes;
  for (const auto& number : array) {
    if (!number.is_number_integer() || number.get<std::int64_t>() < 0 ||
        number.get<std::int64_t>() > kMaxByte) {
      return std::nullopt;
    }
    bytes += static_cast<char>(number.get<int>());
  }
  return bytes;
}

/// A string, or a number, which other programs than journalctl write for one.
std::optional<std::string> scalar_text(const nlohmann::json& value) {
  if (value.is_string()) {
    return value.get<std::string>();
  }
  return value.is_number_integer() ? std::optional(value.dump()) : std::nullopt;
}

/// A field's value; of one that occurs several times the first. nullopt for null.
std::optional<std::string> to_text(const nlohmann::json& value) {
  if (!value.is_array() || value.empty()) {
    return scalar_text(value);
  }
  if (value.front().is_number()) {
    return to_bytes(value);
  }
  // Arrays within arrays are bytes that occur several times, and no deeper.
  return value.front().is_array() ? to_bytes(value.front()) : scalar_text(value.front());
}

class JsonParser : public LineParser {
 public:
  explicit JsonParser(EntryCollector& entries) : entries_(entries), builder_(entries) {}

  [[nodiscard]] std::string format() const override { return "journalctl -o json"; }

  void take(std::string_view line, std::uint64_t number) override {
    consume(line, "\x1e");
    consume(line, "data: ");
    if (trim(line).empty() || line.starts_with("-- ")) {
      return;
    }
    const auto object = nlohmann::json::parse(line, nullptr, false);
    if (!object.is_object()) {
      entries_.problem(number, "no JSON object", {});  // it may hold anything
      return;
    }
    Fields fields;
    for (const auto& [name, value] : object.items()) {
      if (!is_wanted(name)) {
        continue;
      }
      auto text = to_text(value);
      if (!text && name == "MESSAGE") {
        entries_.problem(number, "a message too large for this form: use journalctl --all", {});
        return;
      }
      if (text) {
        fields.emplace(name, *std::move(text));
      }
    }
    builder_.take(fields, number);
  }

  void finish() override { builder_.finish(); }

 private:
  EntryCollector& entries_;
  EntryBuilder builder_;
};

// --- export

class ExportParser : public LineParser {
 public:
  explicit ExportParser(EntryCollector& entries) : entries_(entries), builder_(entries) {}

  [[nodiscard]] std::string format() const override { return "journalctl -o export"; }

  void take(std::string_view line, std::uint64_t number) override {
    const std::uint64_t dropped = std::exchange(dropped_, 0);
    if (skip_ > 0) {
      skip_ -= std::min(skip_, line.size() + dropped + 1);
      return;
    }
    if (!binary_name_.empty()) {
      take_binary(line, dropped, number);
      return;
    }
    if (line.empty()) {
      end_entry();
      return;
    }
    first_line_ = fields_.empty() && !torn_ ? number : first_line_;
    const size_t equals = line.find('=');
    if (equals == std::string_view::npos) {
      begin_binary(line, number);
    } else {
      set(line.substr(0, equals), line.substr(equals + 1));
    }
  }

  void note_dropped(std::uint64_t bytes) override { dropped_ = bytes; }

  void finish() override {
    if (!binary_name_.empty() || skip_ > 0) {
      entries_.problem(first_line_, "an entry that is cut off", {});
    } else {
      end_entry();
    }
    builder_.finish();
  }

 private:
  static constexpr size_t kLengthBytes = 8;

  void begin_binary(std::string_view name, std::uint64_t number) {
    const bool fits = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
      return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    });
    if (!fits) {
      torn_ = true;
      entries_.problem(number, "no field of the journal", name);
      return;
    }
    binary_name_ = name;
    binary_.clear();
  }

  /// `line` is a piece of a field's bytes: eight of length, little endian, then so many.
  void take_binary(std::string_view line, std::uint64_t dropped, std::uint64_t number) {
    binary_.append(line);
    if (binary_.size() < kLengthBytes) {
      binary_ += '\n';
      return;
    }
    std::uint64_t length = 0;
    for (size_t i = kLengthBytes; i-- > 0;) {
      length = length << 8U | static_cast<unsigned char>(binary_[i]);
    }
    const std::uint64_t have = binary_.size() - kLengthBytes + dropped;
    if (length > LogReader::kMaxLineBytes || have > length) {
      // What is in it must not be taken for entries.
      entries_.problem(number, "a field whose length does not fit", binary_name_);
      torn_ = true;
      binary_name_.clear();
      skip_ = length > have ? length - have : 0;
    } else if (have == length) {
      set(binary_name_, std::string_view(binary_).substr(kLengthBytes));
      binary_name_.clear();
    } else {
      binary_ += '\n';
    }
  }

  void set(std::string_view name, std::string_view value) {
    if (is_wanted(name)) {
      fields_.emplace(name, value);
    } else if (fields_.empty()) {
      fields_.emplace(std::string(), std::string());  // an entry has begun
    }
  }

  void end_entry() {
    if (!torn_ && !fields_.empty()) {
      builder_.take(fields_, first_line_);
    }
    fields_.clear();
    torn_ = false;
  }

  EntryCollector& entries_;
  EntryBuilder builder_;
  Fields fields_;
  std::string binary_name_;  // not empty while a field's bytes are gathered
  std::string binary_;
  std::uint64_t first_line_ = 0;  // of the entry
  bool torn_ = false;             // the entry cannot be read
  std::uint64_t skip_ = 0;        // bytes of a field that is not read
  std::uint64_t dropped_ = 0;     // of the next line
};

}  // namespace

std::unique_ptr<LineParser> make_json_parser(EntryCollector& entries) {
  return std::make_unique<JsonParser>(entries);
}

std::unique_ptr<LineParser> make_export_parser(EntryCollector& entries) {
  return std::make_unique<ExportParser>(entries);
}

bool looks_like_json(std::string_view head) {
  consume(head, "\x1e");
  consume(head, "data: ");
  if (!consume(head, "{")) {
    return false;
  }
  head.remove_prefix(std::min(head.find_first_not_of(' '), head.size()));
  return head.starts_with('"');
}

bool looks_like_export(std::string_view head) {
  const size_t end = head.find("\n\n");
  const std::string_view entry = head.substr(0, end);
  return head.starts_with("__CURSOR=") || entry.starts_with("__REALTIME_TIMESTAMP=") ||
         entry.find("\n__REALTIME_TIMESTAMP=") != std::string_view::npos;
}

}  // namespace apu
