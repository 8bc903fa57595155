#include "analysis/log_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "analysis/journal_lines.h"
#include "analysis/text_lines.h"
#include "exporter/text.h"

namespace apu {
namespace {

constexpr size_t kHeadBytes = 64 << 10;
constexpr size_t kShownProblems = 10;
constexpr size_t kShownText = 160;

/// For input of no format that is known.
class RefusingParser : public LineParser {
 public:
  [[nodiscard]] std::string format() const override { return "unknown"; }

  void take(std::string_view /*line*/, std::uint64_t /*number*/) override {}

  void finish() override {}
};

/// journalctl -o verbose, whose stamps would pass for those of lines.
bool is_verbose(std::string_view head) {
  return head.find("\n    MESSAGE=") != std::string_view::npos ||
         head.find("\n    _BOOT_ID=") != std::string_view::npos;
}

/// The blanks before the first line, if it is a log's but for these.
size_t indent_of(std::string_view head, TimePoint now) {
  const std::string_view line = first_line(head);
  const size_t indent = std::min(line.find_first_not_of(' '), line.size());
  return indent > 0 && indent < line.size() && looks_like_text(line.substr(indent), now) ? indent
                                                                                         : 0;
}

/// Why `head` is no log.
std::string refusal(std::string_view head) {
  if (head.empty()) {
    return "it is empty";
  }
  if (head.starts_with("LPKSHHRH")) {
    return "it is a binary journal: give it to journalctl --file=FILE -o export first";
  }
  if (is_verbose(head)) {
    return "the form of journalctl -o verbose is not read: use -o export";
  }
  if (head.find('\0') != std::string_view::npos) {
    return "it is a binary file";
  }
  return "no line has the form of a log";
}

}  // namespace

void EntryCollector::add(LogEntry entry) {
  entry.segment = segment_;
  entry.plain_kernel_before = std::exchange(plain_kernel_, 0);
  entry.plain_user_before = std::exchange(plain_user_, 0);
  entry.lost_before = std::exchange(lost_, 0);
  file_.entries.push_back(std::move(entry));
}

void EntryCollector::separate_boots() {
  ++segment_;
}

void EntryCollector::problem(std::uint64_t line, std::string_view what, std::string_view text) {
  ++file_.unreadable;
  if (file_.problems.size() < kShownProblems) {
    const std::string shown = text.empty() ? "" : fmt::format(": '{}'", text.substr(0, kShownText));
    file_.problems.push_back(fmt::format("{}:{}: {}{}", file_.name, line, what, shown));
  }
}

LogReader::LogReader(std::string name, TimePoint now) : entries_(file_), now_(now) {
  file_.name = std::move(name);
}

LogReader::~LogReader() = default;

void LogReader::feed(std::string_view bytes) {
  if (parser_) {
    split_lines(bytes);
    return;
  }
  head_.append(bytes);
  if (head_.size() >= kHeadBytes) {
    choose_format();
  }
}

LogFile LogReader::finish(Status failure) {
  if (!parser_) {
    choose_format();
  }
  take_partial();
  parser_->finish();
  file_.format = parser_->format();
  if (failure) {
    file_.failure = std::move(failure);
  }
  return std::move(file_);
}

void LogReader::choose_format() {
  std::string head = std::exchange(head_, {});
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (head.starts_with(kByteOrderMark)) {
    head.erase(0, kByteOrderMark.size());
  }
  indent_ = indent_of(head, now_);
  if (looks_like_json(head)) {
    parser_ = make_json_parser(entries_);
  } else if (looks_like_export(head)) {
    parser_ = make_export_parser(entries_);
    binary_blocks_ = true;
  } else if (indent_ > 0 || (looks_like_text(head, now_) && !is_verbose(head))) {
    parser_ = make_text_parser(entries_, now_);
  } else if (looks_like_bare(head) && !is_verbose(head)) {
    parser_ = make_bare_parser(entries_);
  } else {
    parser_ = std::make_unique<RefusingParser>();
    file_.failure = Error{ErrorKind::kMalformed, file_.name + ": " + refusal(head)};
  }
  split_lines(head);
}

void LogReader::split_lines(std::string_view bytes) {
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    if (end == std::string_view::npos) {
      append_partial(bytes);
      return;
    }
    if (partial_.empty() && dropped_ == 0) {
      take_line(bytes.substr(0, end));
    } else {
      append_partial(bytes.substr(0, end));
      take_partial();
    }
    bytes.remove_prefix(end + 1);
  }
}

void LogReader::append_partial(std::string_view piece) {
  const size_t room = kMaxLineBytes - std::min(kMaxLineBytes, partial_.size());
  if (piece.size() > room) {
    if (dropped_ == 0) {
      entries_.problem(file_.lines + 1, fmt::format("line over {} bytes", kMaxLineBytes), {});
    }
    dropped_ += piece.size() - room;
  }
  partial_.append(piece.substr(0, room));
}

void LogReader::take_partial() {
  if (partial_.empty()) {
    return;
  }
  parser_->note_dropped(std::exchange(dropped_, 0));
  take_line(partial_);
  partial_.clear();
}

void LogReader::take_line(std::string_view line) {
  ++file_.lines;
  if (!binary_blocks_ && line.ends_with('\r')) {
    line.remove_suffix(1);
  }
  if (indent_ > 0) {
    line.remove_prefix(std::min({indent_, line.find_first_not_of(' '), line.size()}));
  }
  parser_->take(line, file_.lines);
}

}  // namespace apu
