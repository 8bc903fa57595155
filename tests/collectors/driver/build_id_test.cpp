#include "collectors/driver/build_id.h"

#include <gtest/gtest.h>

namespace apu {
namespace {

using namespace std::string_literals;

const std::string kHead = "\4\0\0\0\x14\0\0\0\3\0\0\0GNU\0"s;
const std::string kId(20, '\xa5');
const std::string kOther(20, '\x5a');

TEST(BuildIdNote, HoldsTheId) {
  EXPECT_EQ(parse_build_id_note(kHead + kId), kId);
  EXPECT_EQ(parse_build_id_note(kHead + kId + "more"), kId);
}

TEST(BuildIdNote, IsNoneIfItIsCutOrOfAnotherType) {
  EXPECT_FALSE(parse_build_id_note(""));
  EXPECT_FALSE(parse_build_id_note(kHead));
  EXPECT_FALSE(parse_build_id_note(kHead + kId.substr(1)));
  EXPECT_FALSE(parse_build_id_note("\4\0\0\0\x14\0\0\0\1\0\0\0GNU\0"s + kId));
  EXPECT_FALSE(parse_build_id_note("\4\0\0\0\xff\xff\xff\xff\3\0\0\0GNU\0"s + kId));
  EXPECT_FALSE(parse_build_id_note("\4\0\0\0\0\0\0\0\3\0\0\0GNU\0"s + kId));
}

/// What a search finds in `file`, which comes in pieces of `size` bytes.
std::optional<bool> search(const std::string& file, size_t size) {
  BuildIdSearch search(kId);
  for (size_t at = 0; at < file.size(); at += size) {
    search.feed(std::string_view(file).substr(at, size));
  }
  return search.found();
}

TEST(BuildIdSearch, FindsItWhereverThePiecesEnd) {
  const std::string file = std::string(100, 'x') + kHead + kId + std::string(50, 'y');
  for (size_t size = 1; size <= file.size(); ++size) {
    EXPECT_EQ(search(file, size), true) << size;
  }
}

TEST(BuildIdSearch, TellsAnotherIdFromNone) {
  const std::string other = std::string(100, 'x') + kHead + kOther + kId;
  for (size_t size = 1; size <= other.size(); ++size) {
    EXPECT_EQ(search(other, size), false) << size;
  }
  EXPECT_FALSE(search("no note, " + kId, 7));
  EXPECT_FALSE(BuildIdSearch(kId).found());
}

}  // namespace
}  // namespace apu
