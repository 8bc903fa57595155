#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "analysis/log_entry.h"

namespace apu {

/// What takes the lines of one format.
class LineParser {
 public:
  virtual ~LineParser() = default;

  /// For a person.
  [[nodiscard]] virtual std::string format() const = 0;

  /// Takes a line, without its newline.
  virtual void take(std::string_view line, std::uint64_t number) = 0;

  /// The next line was longer by so many bytes, which are not handed on.
  virtual void note_dropped(std::uint64_t /*bytes*/) {}

  /// The input ended.
  virtual void finish() = 0;
};

/// Gathers what the lines of one file say.
class EntryCollector {
 public:
  explicit EntryCollector(LogFile& file) : file_(file) {}

  /// Keeps an entry.
  void add(LogEntry entry);

  void count_plain_kernel() { ++plain_kernel_; }

  void count_plain_user() { ++plain_user_; }

  /// The lines after this one are of another boot than those before it.
  void separate_boots();

  /// `count` records are missing here.
  void lose(std::uint64_t count) { lost_ += count; }

  /// Counts a line that could not be read and keeps the first messages of the kind.
  void problem(std::uint64_t line, std::string_view what, std::string_view text);

 private:
  LogFile& file_;
  unsigned segment_ = 0;
  std::uint64_t plain_kernel_ = 0;
  std::uint64_t plain_user_ = 0;
  std::uint64_t lost_ = 0;
};

/// Reads a saved log of any format from its bytes, piece by piece. The format is told from the
/// first 64 KiB:
///   text        every form of parse_log_line; separators of journalctl; NULs that a crash left at
///               the start of a line
///   bare        messages of the kernel whose stamps were cut off, if one is of a kind that counts
///   json        journalctl -o json, json-seq and json-sse: an object a line
///   export      journalctl -o export
class LogReader {
 public:
  /// `now` is what stamps without a year are read against first.
  LogReader(std::string name, TimePoint now);
  ~LogReader();
  LogReader(const LogReader&) = delete;
  LogReader& operator=(const LogReader&) = delete;

  void feed(std::string_view bytes);

  /// The input ended, whole or by `failure`. Call once.
  LogFile finish(Status failure);

  /// No line is longer; of one that is, the rest is dropped and counted.
  static constexpr size_t kMaxLineBytes = 4 << 20;

 private:
  void choose_format();
  void split_lines(std::string_view bytes);
  void take_line(std::string_view line);
  void append_partial(std::string_view piece);
  void take_partial();

  LogFile file_;
  EntryCollector entries_;
  TimePoint now_;
  std::string head_;  // until the format is chosen
  std::string partial_;
  std::uint64_t dropped_ = 0;   // bytes of the line that `partial_` has no room for
  size_t indent_ = 0;           // blanks that all lines begin with: it was pasted somewhere
  bool binary_blocks_ = false;  // the format holds lengths and bytes beside its lines
  std::unique_ptr<LineParser> parser_;
};

}  // namespace apu
