#include "tests/support/temp_tree.h"

#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <stdexcept>

namespace apu {

TempTree::TempTree() {
  std::string name = (std::filesystem::temp_directory_path() / "apu-test-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) {
    throw std::runtime_error("cannot create " + name);
  }
  path_ = name;
}

TempTree::~TempTree() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void TempTree::write(const std::string& relative, std::string_view content) const {
  const std::filesystem::path file = path_ / relative;
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary | std::ios::trunc) << content;
}

void TempTree::make_fifo(const std::string& relative) const {
  const std::filesystem::path file = path_ / relative;
  std::filesystem::create_directories(file.parent_path());
  if (::mkfifo(file.c_str(), 0600) != 0) {
    throw std::runtime_error("cannot make a FIFO at " + file.string());
  }
}

void TempTree::link(const std::string& relative, const std::string& target) const {
  const std::filesystem::path file = path_ / relative;
  std::filesystem::create_directories(file.parent_path());
  std::filesystem::create_symlink(target, file);
}

void TempTree::remove(const std::string& relative) const {
  std::filesystem::remove_all(path_ / relative);
}

}  // namespace apu
