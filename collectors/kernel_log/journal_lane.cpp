#include "collectors/kernel_log/journal_lane.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "collectors/kernel_log/journal_frame.h"
#include "exporter/text.h"

namespace apu {
namespace {

struct Free {
  void operator()(char* text) const { std::free(text); }  // NOLINT: libsystemd's malloc
};

std::string cursor_of(sd_journal* journal) {
  char* text = nullptr;
  const int result = sd_journal_get_cursor(journal, &text);
  const std::unique_ptr<char, Free> owned(text);
  return result >= 0 ? std::string(text) : std::string();
}

struct EntryStamp {
  std::chrono::microseconds since_boot{0};
  sd_id128_t boot{};
};

EntryStamp stamp_of(sd_journal* journal) {
  EntryStamp stamp;
  std::uint64_t micros = 0;
  if (sd_journal_get_monotonic_usec(journal, &micros, &stamp.boot) >= 0) {
    stamp.since_boot = std::chrono::microseconds(static_cast<std::int64_t>(micros));
  }
  return stamp;
}

void match(sd_journal* journal, const std::string& field) {
  sd_journal_add_match(journal, field.data(), field.size());
}

}  // namespace

Result<JournalHandle> open_journal(const JournalPlace& place) {
  sd_journal* opened = nullptr;
  const int result = sd_journal_open_directory(&opened, place.directory.c_str(),
                                               place.is_root ? SD_JOURNAL_OS_ROOT : 0);
  if (result < 0) {
    return error_from_errno(-result, "open journal " + place.directory.string());
  }
  sd_journal_set_data_threshold(opened, kMaxJournalMessage);
  return JournalHandle(opened);
}

std::string newest_boot(sd_journal* journal) {
  std::uint64_t stamp = 0;
  sd_id128_t boot{};
  if (sd_journal_seek_tail(journal) < 0 || sd_journal_previous(journal) <= 0 ||
      sd_journal_get_monotonic_usec(journal, &stamp, &boot) < 0) {
    return {};
  }
  std::array<char, SD_ID128_STRING_MAX> text{};
  return sd_id128_to_string(boot, text.data());
}

std::string first_entry_of_boot(const JournalPlace& place, const std::string& boot) {
  const auto journal = open_journal(place);
  if (!journal) {
    return {};
  }
  match(journal->get(), "_BOOT_ID=" + boot);
  const bool found =
      sd_journal_seek_head(journal->get()) >= 0 && sd_journal_next(journal->get()) > 0;
  return found ? cursor_of(journal->get()) : std::string();
}

JournalLane::JournalLane(const JournalQuery& query, std::string boot, LaneContent content)
    : query_(query),
      boot_(std::move(boot)),
      content_(content),
      matches_boot_(content != LaneContent::kKernel || query.after),
      start_(content == LaneContent::kKernel ? query.kernel_position : query.other_position) {
  sd_id128_from_string(boot_.c_str(), &boot_id_);  // else it is of no boot
}

Result<JournalHandle> JournalLane::open_filtered() const {
  auto opened = open_journal(query_.place);
  if (!opened) {
    return opened;
  }
  sd_journal* journal = opened->get();
  if (matches_boot_) {
    match(journal, "_BOOT_ID=" + boot_);
  }
  if (content_ == LaneContent::kKernel) {
    match(journal, "_TRANSPORT=kernel");
    return opened;
  }
  sd_journal_add_conjunction(journal);
  if (query_.managers) {
    match(journal, "_PID=1");
    sd_journal_add_disjunction(journal);
    match(journal, "SYSLOG_IDENTIFIER=systemd");
    sd_journal_add_disjunction(journal);
  }
  if (query_.journald) {
    match(journal, "_TRANSPORT=driver");
  }
  return opened;
}

Status JournalLane::open() {
  const JournalPosition here = position();
  journal_.reset();  // first, so that its memory does not add up with the new one's
  auto opened = open_filtered();
  if (!opened) {
    start_ = here;
    read_any_ = loaded_ = false;
    return opened.error();
  }
  journal_ = *std::move(opened);
  sd_journal_get_fd(journal_.get());  // begins to watch the directories
  return go_to(here);
}

Status JournalLane::go_to(const JournalPosition& position) {
  start_ = position;
  read_any_ = loaded_ = ended_ = false;
  if (position.cursor.empty()) {
    const int result = seek_start();
    return result < 0 ? Status(error_from_errno(-result, "seek in the journal")) : std::nullopt;
  }
  const int result = sd_journal_seek_cursor(journal_.get(), position.cursor.c_str());
  if (result < 0) {
    return error_from_errno(-result, "seek to journal entry " + position.cursor);
  }
  // An entry that is no more was read, and the one that stands there now was not.
  if (sd_journal_next(journal_.get()) > 0) {
    const bool there = sd_journal_test_cursor(journal_.get(), position.cursor.c_str()) > 0;
    loaded_ = note_entry() && (!there || position.unread);
  }
  return std::nullopt;
}

int JournalLane::seek_start() {
  if (query_.after) {
    return sd_journal_seek_monotonic_usec(journal_.get(), boot_id_,
                                          static_cast<std::uint64_t>(query_.after->count()));
  }
  if (matches_boot_) {
    return sd_journal_seek_head(journal_.get());
  }
  const std::string first = first_entry_of_boot(query_.place, boot_);
  return first.empty() ? sd_journal_seek_head(journal_.get())
                       : sd_journal_seek_cursor(journal_.get(), first.c_str());
}

/// Notes where the journal stands. Returns whether the entry is of the boot.
bool JournalLane::note_entry() {
  const EntryStamp stamp = stamp_of(journal_.get());
  read_any_ = true;
  if (sd_id128_equal(stamp.boot, boot_id_) == 0) {
    return false;
  }
  stamp_ = stamp.since_boot;
  return true;
}

bool JournalLane::load() {
  if (finished_ || ended_) {
    return false;
  }
  while (!loaded_ && journal_ && sd_journal_next(journal_.get()) > 0) {
    loaded_ = note_entry();
  }
  ended_ = !loaded_;
  return loaded_;
}

void JournalLane::consume() {
  loaded_ = false;
}

std::chrono::microseconds JournalLane::realtime() const {
  std::uint64_t time = 0;
  constexpr std::uint64_t kLatest =
      9'000'000'000'000'000;  // in the year 2255; a file may be damaged
  sd_journal_get_realtime_usec(journal_.get(), &time);
  return std::chrono::microseconds(static_cast<std::int64_t>(std::min(time, kLatest)));
}

std::optional<std::string_view> JournalLane::field(const char* name, int* error) const {
  const void* data = nullptr;
  size_t size = 0;
  const int result = sd_journal_get_data(journal_.get(), name, &data, &size);
  if (result < 0) {
    if (error != nullptr) {
      *error = -result;
    }
    return std::nullopt;
  }
  const std::string_view whole(static_cast<const char*>(data), size);
  const size_t equals = whole.find('=');
  return whole.substr(equals == std::string_view::npos ? whole.size() : equals + 1);
}

std::optional<JournalLane::KernelText> JournalLane::kernel_text(int& error) {
  std::optional<std::string_view> facility;
  std::optional<std::string_view> message;
  const void* data = nullptr;
  size_t size = 0;
  int result = 0;
  sd_journal_restart_data(journal_.get());
  while ((!facility || !message) &&
         (result = sd_journal_enumerate_data(journal_.get(), &data, &size)) > 0) {
    std::string_view field(static_cast<const char*>(data), size);
    if (field.front() != 'M' && field.front() != 'S') {  // no field is empty
      continue;
    }
    if (!message && apu::consume(field, "MESSAGE=")) {
      // Shared fields come first but in the first entries of a file.
      message = facility ? field : (message_ = field);
    } else if (!facility && apu::consume(field, "SYSLOG_FACILITY=")) {
      facility = field == "0" ? "0" : "other";
    }
  }
  if (!message) {
    error = result < 0 ? -result : ENOENT;
    return std::nullopt;
  }
  return KernelText{*message, facility.value_or("0") != "0"};
}

JournalPosition JournalLane::position() const {
  if (!read_any_ || !journal_) {
    return start_;
  }
  std::string cursor = cursor_of(journal_.get());
  if (cursor.empty()) {  // the file of the last entry is gone: behind its time
    return {fmt::format("b={};m={:x}", boot_, stamp_.count() + 1), true};
  }
  return {std::move(cursor), loaded_};
}

bool JournalLane::lost_a_file() const {
  // libsystemd drops a file in which it cannot go on. One that opens the same files has it.
  const auto fresh = open_journal(query_.place);
  if (!fresh) {
    return false;
  }
  std::uint64_t ours = 0;
  std::uint64_t all = 0;
  sd_journal_process(journal_.get());
  return sd_journal_get_usage(fresh->get(), &all) >= 0 &&
         sd_journal_get_usage(journal_.get(), &ours) >= 0 && all > ours;
}

bool JournalLane::skip_damage() {
  const std::chrono::microseconds last = stamp_;
  const auto backwards = open_filtered();
  if (!backwards || sd_journal_seek_tail(backwards->get()) < 0) {
    return false;
  }
  std::string first_behind;
  while (sd_journal_previous(backwards->get()) > 0) {
    const EntryStamp stamp = stamp_of(backwards->get());
    if (sd_id128_equal(stamp.boot, boot_id_) == 0 || stamp.since_boot <= last) {
      break;
    }
    first_behind = cursor_of(backwards->get());
  }
  return !first_behind.empty() && !go_to({first_behind, true}) && loaded_;
}

}  // namespace apu
