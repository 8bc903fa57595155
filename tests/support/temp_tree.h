#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace apu {

/// A directory that goes away with this object.
class TempTree {
 public:
  TempTree();
  ~TempTree();
  TempTree(const TempTree&) = delete;
  TempTree& operator=(const TempTree&) = delete;

  /// Writes a file, and the directories above it.
  void write(const std::string& relative, std::string_view content) const;

  /// Makes a FIFO: a file whose open never returns while nobody writes to it.
  void make_fifo(const std::string& relative) const;

  /// Makes a symbolic link, dangling or not, and the directories above it.
  void link(const std::string& relative, const std::string& target) const;

  void remove(const std::string& relative) const;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace apu
