#include "collectors/kernel_log/journal_reader.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collectors/kernel_log/journal_batch.h"
#include "collectors/kernel_log/journal_entry.h"
#include "collectors/kernel_log/journal_files.h"
#include "collectors/kernel_log/journal_lane.h"
#include "collectors/kernel_log/relevance.h"
#include "collectors/kernel_log/resident_bytes.h"

namespace apu {
namespace {

using Steady = std::chrono::steady_clock;

// libsystemd keeps what it has mapped, and all of it once it was touched: so much may be resident,
// and so much while there is nothing new. To open the files anew takes some milliseconds.
constexpr std::uint64_t kMaxResidentBytes = std::uint64_t{56} << 20;
constexpr std::uint64_t kMaxIdleBytes = std::uint64_t{16} << 20;
constexpr unsigned kStepsPerMemoryCheck = 512;

constexpr std::chrono::seconds kDamageCheckInterval{60};

// How long new entries may go unseen where inotify does not work.
constexpr int kWaitAtMostMs = 5000;

class JournalReader {
 public:
  explicit JournalReader(JournalQuery query) : query_(std::move(query)) {}

  /// Until stdin ends, or nobody reads stdout.
  void run() {
    do {
      walk();
    } while (answer() && wait());
  }

 private:
  // --- opening

  /// Opens what is there now. Where nothing can be read, problem_ says why.
  bool ensure_open() {
    if (std::exchange(broken_, false)) {
      close_lanes();
    }
    if (!lanes_.empty() && !sync_) {
      return true;
    }
    const JournalFiles files = look_for_journal_files(directories_of(query_.place));
    problem_ = problem_of(files, query_.place.directory);
    if (!problem_ && !lanes_.empty() && files.directories == opened_) {
      return true;
    }
    close_lanes();
    opened_ = files.directories;
    if (!problem_) {
      problem_ = decide_boot();
    }
    if (!problem_ && query_.kernel) {
      add_lane(LaneContent::kKernel);
    }
    if (!problem_ && (query_.managers || query_.journald)) {
      add_lane(LaneContent::kOthers);
    }
    return !problem_;
  }

  Status decide_boot() {
    auto journal = open_journal(query_.place);
    if (!journal) {
      return journal.error();
    }
    const std::string newest = newest_boot(journal->get());
    if (newest.empty()) {
      std::uint64_t bytes = 0;
      const bool any_file = sd_journal_get_usage(journal->get(), &bytes) >= 0 && bytes > 0;
      return Error{any_file ? ErrorKind::kNotFound : ErrorKind::kMalformed,
                   fmt::format("no {} of the journal below {} can be read",
                               any_file ? "entry" : "file", query_.place.directory.string())};
    }
    if (query_.boot.empty()) {
      query_.boot = newest;
    }
    return std::nullopt;
  }

  void add_lane(LaneContent content) {
    lanes_.emplace_back(query_, query_.boot, content);
    problem_ = lanes_.back().open();
    if (problem_) {
      lanes_.clear();
    }
  }

  void close_lanes() {
    remember_positions();
    lanes_.clear();
  }

  void remember_positions() {
    for (const JournalLane& lane : lanes_) {
      position_of(lane.content()) = lane.position();
    }
  }

  JournalPosition& position_of(LaneContent content) {
    return content == LaneContent::kKernel ? query_.kernel_position : query_.other_position;
  }

  // --- reading

  /// Reads to the end of the journal.
  void walk() {
    if (!ensure_open()) {
      return;
    }
    for (JournalLane& lane : lanes_) {
      lane.wake();
    }
    do {
      while (JournalLane* lane = earliest()) {
        take(*lane);
        if (batch_.count_step()) {
          commit();
        }
        if (++steps_ % kStepsPerMemoryCheck == 0) {
          let_go_above(kMaxResidentBytes);
        }
      }
    } while (goes_on_after_damage());
    let_go_above(kMaxIdleBytes);
    if (!batch_.empty()) {
      commit();
    }
  }

  /// The one whose next entry is the oldest. Of one time the kernel's comes first.
  JournalLane* earliest() {
    JournalLane* found = nullptr;
    for (JournalLane& lane : lanes_) {
      if (lane.load() && (found == nullptr || lane.stamp() < found->stamp())) {
        found = &lane;
      }
    }
    return found;
  }

  void take(JournalLane& lane) {
    int error = 0;
    if (lane.content() == LaneContent::kKernel) {
      if (const auto text = lane.kernel_text(error)) {
        take_kernel(lane, *text);
      }
    } else if (const auto message = lane.field("MESSAGE", &error)) {
      take_other(lane, *message);
    }
    if (error != 0) {
      batch_.add_trouble(fmt::format("{}: {}", lane.position().cursor,
                                     error_from_errno(error, "text of a journal entry").message));
    }
    found_any_ = true;
    lane.consume();
  }

  void take_kernel(JournalLane& lane, const JournalLane::KernelText& text) {
    const bool matters = may_matter(text.message);
    if (!matters && !text.of_user_space && !bounded()) {
      batch_.add_plain_line();
      return;
    }
    message_ = text.message;
    const Side side = side_of(lane, query_);
    if (side == Side::kInside && !matters && !text.of_user_space) {
      batch_.add_plain_line();
    } else if (side == Side::kInside || side == Side::kAtEnd) {
      batch_.add_record(to_kernel_record(lane, message_));
    } else if (side == Side::kFarBehind) {
      lane.finish();
    }
  }

  void take_other(JournalLane& lane, std::string_view message) {
    if (!may_matter_of_others(message)) {
      return;
    }
    message_ = message;
    const Side side = side_of(lane, query_);
    if (side == Side::kInside || side == Side::kAtEnd) {
      batch_.add_record(to_other_record(lane, message_, user_));
    } else if (side == Side::kFarBehind) {
      lane.finish();
    }
  }

  [[nodiscard]] bool bounded() const { return query_.after || query_.until; }

  /// Lets go of what libsystemd has mapped, if that is more.
  void let_go_above(std::uint64_t bytes) {
    if (resident_bytes() > own_bytes_ + bytes) {
      for (JournalLane& lane : lanes_) {
        reopen(lane);
      }
    }
  }

  void reopen(JournalLane& lane) {
    if (const Status error = lane.open()) {
      batch_.add_trouble(error->message);
      lane.finish();
      broken_ = true;
    }
  }

  /// At the end: looks now and then for a file that was not read to its end.
  bool goes_on_after_damage() {
    if (bounded() || lanes_.empty() || Steady::now() < next_damage_check_) {
      return false;
    }
    next_damage_check_ = Steady::now() + kDamageCheckInterval;
    bool more = false;
    for (JournalLane& lane : lanes_) {
      const std::string here = lane.position().cursor;
      if (here == damaged_after_ || !lane.lost_a_file()) {
        continue;
      }
      damaged_after_ = here;
      batch_.add_trouble(
          fmt::format("{}: a journal file is damaged: entries near this one are missing", here));
      reopen(lane);
      more = lane.load() || lane.skip_damage() || more;
    }
    return more;
  }

  void commit() {
    remember_positions();
    if (!batch_.commit(query_.kernel_position, query_.other_position) || end_of_input()) {
      std::quick_exit(EXIT_SUCCESS);  // nobody is there
    }
  }

  // --- answering

  static bool end_of_input() {
    pollfd input{STDIN_FILENO, POLLIN, 0};
    return ::poll(&input, 1, 0) > 0 && (input.revents & POLLIN) == 0;  // POLLHUP alone
  }

  bool answer() {
    if (!sync_) {
      return true;
    }
    if (!problem_ && !found_any_) {
      problem_ = look_for_boot();
    }
    return batch_.answer(*std::exchange(sync_, std::nullopt), problem_);
  }

  /// A journal of other boots alone is none.
  Status look_for_boot() {
    found_any_ = !query_.kernel_position.cursor.empty() || !query_.other_position.cursor.empty() ||
                 !first_entry_of_boot(query_.place, query_.boot).empty();
    if (found_any_) {
      return std::nullopt;
    }
    return Error{ErrorKind::kNotFound, fmt::format("no entry of boot {} in the journal below {}",
                                                   query_.boot, query_.place.directory.string())};
  }

  /// Waits for a sync or for changes of the journal. False at the end of stdin.
  bool wait() {
    std::vector<pollfd> polled{{STDIN_FILENO, POLLIN, 0}};
    for (const JournalLane& lane : lanes_) {
      polled.push_back({lane.descriptor(), POLLIN, 0});
    }
    ::poll(polled.data(), polled.size(), kWaitAtMostMs);
    for (JournalLane& lane : lanes_) {
      lane.process_changes();
    }
    return polled[0].revents == 0 || read_sync();
  }

  bool read_sync() {
    std::array<unsigned char, 8> bytes{};
    const ssize_t count = ::read(STDIN_FILENO, bytes.data(), bytes.size());
    if (count != static_cast<ssize_t>(bytes.size())) {
      return count < 0 && errno == EINTR;
    }
    std::uint64_t number = 0;
    for (size_t i = bytes.size(); i-- > 0;) {
      number = (number << 8) | bytes.at(i);
    }
    sync_ = number;
    return true;
  }

  JournalQuery query_;  // its positions are those of the last commit
  std::deque<JournalLane> lanes_;
  decltype(JournalFiles::directories) opened_;
  Status problem_;
  JournalBatch batch_{STDOUT_FILENO};
  std::optional<std::uint64_t> sync_;
  std::uint64_t own_bytes_ = resident_bytes();  // before any file was opened
  unsigned steps_ = 0;
  bool found_any_ = false;
  bool broken_ = false;        // a lane could not be opened anew
  std::string damaged_after_;  // where damage was last reported
  Steady::time_point next_damage_check_;
  std::string message_;  // of the entry at hand: other fields may take the memory of its text
  std::string user_;
};

}  // namespace

int run_journal_reader(std::span<const char* const> arguments) {
  ::prctl(PR_SET_NAME, "apu-journal");
  std::signal(SIGBUS, SIG_DFL);  // sanitizers handle it, and then the parent sees no signal
  const auto query = parse_journal_query(arguments);
  if (!query) {
    std::fprintf(stderr, "apu_exporter: %s\n", query.error().message.c_str());
    return EXIT_FAILURE;
  }
  JournalReader(*query).run();
  return EXIT_SUCCESS;
}

}  // namespace apu
