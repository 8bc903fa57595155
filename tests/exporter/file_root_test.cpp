#include "exporter/file_root.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <map>

#include "tests/support/temp_tree.h"

namespace apu {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

class FileRootTest : public testing::Test {
 protected:
  TempTree tree_;
  FileRoot root_{tree_.path()};
};

TEST_F(FileRootTest, ReadsBelowItsRoot) {
  tree_.write("sys/kernel/osrelease", "6.12.0\n");
  const auto content = root_.read("sys/kernel/osrelease");
  ASSERT_TRUE(content);
  EXPECT_EQ(*content, "6.12.0\n");
}

TEST_F(FileRootTest, ReadsAnEmptyFile) {
  tree_.write("empty", "");
  const auto content = root_.read("empty");
  ASSERT_TRUE(content);
  EXPECT_THAT(*content, IsEmpty());
}

TEST_F(FileRootTest, ReadsBinaryContentWhole) {
  const std::string binary("a\0b\xff\n", 5);
  tree_.write("cmdline", binary);
  const auto content = root_.read("cmdline");
  ASSERT_TRUE(content);
  EXPECT_EQ(*content, binary);
}

TEST_F(FileRootTest, ReadsAFileThatIsLongerThanOnePiece) {
  std::string text;
  for (int i = 0; i < 5000; ++i) {
    text += "line " + std::to_string(i) + "\n";
  }
  ASSERT_GT(text.size(), size_t{16} << 10);
  tree_.write("long", text);
  const auto content = root_.read("long");
  ASSERT_TRUE(content);
  EXPECT_EQ(*content, text);
}

TEST_F(FileRootTest, ReadsAFileThatSaysItsSizeIsZero) {
  const auto content = FileRoot("/proc").read("self/status");
  ASSERT_TRUE(content);
  EXPECT_THAT(*content, HasSubstr("Threads:"));
}

TEST_F(FileRootTest, ReadsAFileOfTheLargestSize) {
  tree_.write("largest", std::string(FileRoot::kMaxFileBytes, 'x'));
  const auto content = root_.read("largest");
  ASSERT_TRUE(content);
  EXPECT_EQ(content->size(), FileRoot::kMaxFileBytes);
}

TEST_F(FileRootTest, RefusesALargerFileInsteadOfCuttingIt) {
  tree_.write("larger", std::string(FileRoot::kMaxFileBytes + 1, 'x'));
  const auto content = root_.read("larger");
  ASSERT_FALSE(content);
  EXPECT_EQ(content.error().kind, ErrorKind::kMalformed);
  EXPECT_THAT(content.error().message, HasSubstr((tree_.path() / "larger").string()));
}

TEST_F(FileRootTest, ReadsLinesAsTheTextHasThem) {
  const auto lines_of = [this](const std::string& text) {
    tree_.write("lines", text);
    std::vector<std::string> lines;
    EXPECT_FALSE(
        root_.for_each_line("lines", [&](std::string_view line) { lines.emplace_back(line); }));
    return lines;
  };
  EXPECT_THAT(lines_of(""), IsEmpty());
  EXPECT_THAT(lines_of("a\n\nb\n"), ElementsAre("a", "", "b"));
  EXPECT_THAT(lines_of("a\nb"), ElementsAre("a", "b"));
  const std::string longer_than_a_piece(20000, 'x');
  EXPECT_THAT(lines_of("a\n" + longer_than_a_piece + "\nb\n"),
              ElementsAre("a", longer_than_a_piece, "b"));
}

TEST_F(FileRootTest, ReadsLinesOfAFileThatIsTooLargeToHold) {
  std::string text;
  for (int i = 0; text.size() <= FileRoot::kMaxFileBytes; ++i) {
    text += "line " + std::to_string(i) + "\n";
  }
  tree_.write("large", text);
  std::string joined;
  EXPECT_FALSE(root_.for_each_line(
      "large", [&](std::string_view line) { joined.append(line).append("\n"); }));
  EXPECT_EQ(joined, text);
}

TEST_F(FileRootTest, RefusesLinesOfAFileWithoutEnd) {
  tree_.write("larger", "");
  std::filesystem::resize_file(tree_.path() / "larger", FileRoot::kMaxLineFileBytes + 1);
  const Status problem = root_.for_each_line(
      "larger", [](std::string_view) { ADD_FAILURE() << "a line that was cut"; });
  ASSERT_TRUE(problem);
  EXPECT_EQ(problem->kind, ErrorKind::kMalformed);
}

TEST_F(FileRootTest, SaysWhyLinesCannotBeRead) {
  const Status problem = root_.for_each_line("none", [](std::string_view) {});
  ASSERT_TRUE(problem);
  EXPECT_EQ(problem->kind, ErrorKind::kNotFound);
}

TEST_F(FileRootTest, SaysThatAFileIsMissing) {
  const auto content = root_.read("none");
  ASSERT_FALSE(content);
  EXPECT_EQ(content.error().kind, ErrorKind::kNotFound);
  EXPECT_EQ(content.error().message,
            "open " + (tree_.path() / "none").string() + ": No such file or directory");
}

TEST_F(FileRootTest, SaysThatADirectoryIsNoFile) {
  tree_.write("directory/file", "");
  const auto content = root_.read("directory");
  ASSERT_FALSE(content);
  EXPECT_EQ(content.error().message,
            "read " + (tree_.path() / "directory").string() + ": Is a directory");
}

TEST_F(FileRootTest, SaysThatPermissionIsMissing) {
  if (::geteuid() == 0) {
    GTEST_SKIP() << "root may read everything";
  }
  tree_.write("secret", "x");
  ASSERT_EQ(::chmod((tree_.path() / "secret").c_str(), 0), 0);
  const auto content = root_.read("secret");
  ASSERT_FALSE(content);
  EXPECT_EQ(content.error().kind, ErrorKind::kPermissionDenied);
}

TEST_F(FileRootTest, ListsNamesSorted) {
  for (const char* name : {"block/zram0", "block/dm-0", "block/nvme0n1", "block/.hidden"}) {
    tree_.write(name, "");
  }
  const auto names = root_.list("block");
  ASSERT_TRUE(names);
  EXPECT_THAT(*names, ElementsAre(".hidden", "dm-0", "nvme0n1", "zram0"));
}

TEST_F(FileRootTest, ListsAnEmptyDirectory) {
  const auto names = root_.list("");
  ASSERT_TRUE(names);
  EXPECT_THAT(*names, IsEmpty());
}

TEST_F(FileRootTest, SaysWhyADirectoryCannotBeListed) {
  tree_.write("file", "");
  const auto missing = root_.list("none");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind, ErrorKind::kNotFound);
  EXPECT_THAT(missing.error().message, HasSubstr("list " + (tree_.path() / "none").string()));
  EXPECT_FALSE(root_.list("file"));
}

TEST_F(FileRootTest, ShowsLinksWithoutFollowingThem) {
  tree_.link("4711/fd/0", "/dev/null");
  tree_.link("4711/fd/7", "/dev/dri/renderD128");
  tree_.link("4711/fd/8", "socket:[1234]");
  tree_.write("4711/fd/file", "no link");
  std::map<std::string, std::string> links;
  EXPECT_FALSE(root_.for_each_link("4711/fd", [&](std::string_view name, std::string_view target) {
    links[std::string(name)] = target;
  }));
  EXPECT_THAT(links, ElementsAre(Pair("0", "/dev/null"), Pair("7", "/dev/dri/renderD128"),
                                 Pair("8", "socket:[1234]")));
}

TEST_F(FileRootTest, SaysWhyLinksCannotBeShown) {
  const Status error = root_.for_each_link("none", [](std::string_view, std::string_view) {});
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind, ErrorKind::kNotFound);
}

TEST_F(FileRootTest, KnowsWhatExists) {
  tree_.write("directory/file", "");
  EXPECT_TRUE(root_.exists("directory/file"));
  EXPECT_TRUE(root_.exists("directory"));
  EXPECT_FALSE(root_.exists("none"));
  EXPECT_FALSE(root_.exists("directory/file/below"));
}

TEST_F(FileRootTest, NamesWhatALinkPointsTo) {
  tree_.link("class/card1/device/driver", "../../../../bus/pci/drivers/amdgpu");
  EXPECT_EQ(*root_.link_name("class/card1/device/driver"), "amdgpu");  // which need not exist
  EXPECT_EQ(root_.link_name("class/card2").error().kind, ErrorKind::kNotFound);
  tree_.write("file", "");
  EXPECT_EQ(root_.link_name("file").error().kind, ErrorKind::kUnknown);
}

}  // namespace
}  // namespace apu
