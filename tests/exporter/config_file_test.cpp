#include "exporter/config_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temp_tree.h"

namespace apu {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

class ConfigFileTest : public testing::Test {
 protected:
  Result<std::vector<ConfigEntry>> read(std::string_view text) const {
    tree_.write("apu.yml", text);
    return read_config_file(file());
  }

  /// The message that refuses `text`; empty if it is accepted.
  std::string refusal_of(std::string_view text) const {
    const auto entries = read(text);
    return entries ? "" : entries.error().message;
  }

  [[nodiscard]] std::string file() const { return (tree_.path() / "apu.yml").string(); }

  TempTree tree_;
};

TEST_F(ConfigFileTest, ReadsNamesValuesAndLines) {
  const auto entries = read("# ours\nlog.level: debug\n\nweb.max-requests: 5\n");
  ASSERT_TRUE(entries);
  ASSERT_THAT(*entries, SizeIs(2));
  EXPECT_EQ((*entries)[0].name, "log.level");
  EXPECT_THAT((*entries)[0].values, ElementsAre("debug"));
  EXPECT_EQ((*entries)[0].line, 2);
  EXPECT_THAT((*entries)[1].values, ElementsAre("5"));
  EXPECT_EQ((*entries)[1].line, 4);
}

TEST_F(ConfigFileTest, ReadsLists) {
  const auto entries = read("web.listen-address:\n  - :1\n  - :2\n");
  ASSERT_TRUE(entries);
  EXPECT_THAT(entries->at(0).values, ElementsAre(":1", ":2"));
}

TEST_F(ConfigFileTest, AcceptsAnEmptyFile) {
  for (const char* text : {"", "# nothing set\n", "---\n"}) {
    const auto entries = read(text);
    ASSERT_TRUE(entries) << text;
    EXPECT_THAT(*entries, IsEmpty());
  }
}

TEST_F(ConfigFileTest, SaysThatTheFileIsMissing) {
  const auto entries = read_config_file("/nonexistent/apu.yml");
  ASSERT_FALSE(entries);
  EXPECT_EQ(entries.error().kind, ErrorKind::kNotFound);
  EXPECT_THAT(entries.error().message, HasSubstr("/nonexistent/apu.yml"));
}

TEST_F(ConfigFileTest, RefusesADirectory) {
  const auto entries = read_config_file(tree_.path());
  ASSERT_FALSE(entries);
  EXPECT_THAT(entries.error().message, HasSubstr("directory"));
}

TEST_F(ConfigFileTest, NamesFileAndLineOfASyntaxError) {
  EXPECT_THAT(refusal_of("log.level: debug\nlog.format: [json\n"), StartsWith(file() + ":"));
  EXPECT_THAT(refusal_of("log.level: debug\n\tlog.format: json\n"), StartsWith(file() + ":2:"));
}

TEST_F(ConfigFileTest, RefusesANameThatIsThereTwice) {
  EXPECT_EQ(refusal_of("log.level: debug\nlog.format: json\nlog.level: info\n"),
            file() + ":3: 'log.level' is set twice");
}

TEST_F(ConfigFileTest, RefusesANestedMap) {
  EXPECT_THAT(refusal_of("log:\n  level: debug\n"), StartsWith(file() + ":1: 'log' needs a value"));
}

TEST_F(ConfigFileTest, RefusesAListThatHoldsMore) {
  EXPECT_THAT(refusal_of("web.listen-address:\n  - :1\n  - [:2]\n"), HasSubstr("needs a value"));
}

TEST_F(ConfigFileTest, RefusesANameWithoutAValue) {
  EXPECT_THAT(refusal_of("log.level:\n"), StartsWith(file() + ":1: 'log.level' needs a value"));
  EXPECT_THAT(refusal_of("web.listen-address: []\n"), HasSubstr("needs a value"));
}

TEST_F(ConfigFileTest, RefusesANameThatIsNoWord) {
  EXPECT_THAT(refusal_of("log.level: info\n[a, b]: 1\n"), StartsWith(file() + ":2:"));
}

TEST_F(ConfigFileTest, RefusesAFileThatIsNoMap) {
  EXPECT_THAT(refusal_of("- log.level\n"), StartsWith(file() + ":1: not a map"));
  EXPECT_THAT(refusal_of("log.level=debug\n"), StartsWith(file() + ":1: not a map"));
}

}  // namespace
}  // namespace apu
