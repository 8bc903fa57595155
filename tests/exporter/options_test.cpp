#include "exporter/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "exporter/health.h"
#include "tests/support/temp_tree.h"

namespace apu {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;

constexpr std::array kSpecs{
    CollectorSpec{"memory", true, seconds(15), seconds(2), OnScrape::kRefresh, "RAM", {}, nullptr},
    CollectorSpec{
        "process", true, seconds(15), seconds(2), OnScrape::kRefresh, "Self", {}, nullptr},
    CollectorSpec{
        "probes", false, seconds(1), seconds(2), OnScrape::kUseNewest, "Kprobes", {}, nullptr}};

CommandLine parse(const std::vector<std::string>& arguments) {
  std::vector<const char*> argv{"apu_exporter"};
  for (const std::string& argument : arguments) {
    argv.push_back(argument.c_str());
  }
  return parse_command_line(static_cast<int>(argv.size()), argv.data(), kSpecs);
}

Options parse_well(const std::vector<std::string>& arguments) {
  const CommandLine line = parse(arguments);
  EXPECT_TRUE(line.options) << line.error;
  return line.options.value_or(Options{});
}

std::vector<std::string> enabled(const Options& options) {
  std::vector<std::string> names;
  for (const EnabledCollector& collector : options.collectors) {
    names.emplace_back(collector.spec.name);
  }
  return names;
}

/// Checks that `line` refuses with exit code 2 and one line on stderr.
void expect_refused(const CommandLine& line) {
  EXPECT_FALSE(line.options);
  EXPECT_EQ(line.exit_code, 2);
  EXPECT_THAT(line.output, IsEmpty());
  EXPECT_THAT(line.error, AllOf(StartsWith("apu_exporter: "), EndsWith("\n")));
  EXPECT_EQ(std::count(line.error.begin(), line.error.end(), '\n'), 1) << line.error;
}

/// The line that refuses `arguments`.
std::string refusal_of(const std::vector<std::string>& arguments) {
  const CommandLine line = parse(arguments);
  expect_refused(line);
  return line.error;
}

TEST(Options, HaveDefaults) {
  const Options options = parse_well({});
  ASSERT_THAT(options.listen, SizeIs(1));
  EXPECT_EQ(options.listen[0].host, "");
  EXPECT_EQ(options.listen[0].port, 10151);
  EXPECT_EQ(options.telemetry_path, "/metrics");
  EXPECT_EQ(options.max_requests, 40U);
  EXPECT_THAT(enabled(options), ElementsAre("memory", "process"));
  EXPECT_EQ(options.collectors.at(0).period, seconds(15));
  EXPECT_EQ(options.paths.rootfs, "/");
  EXPECT_EQ(options.paths.procfs, std::nullopt);
  EXPECT_EQ(options.kernel_log, "auto");
  EXPECT_EQ(options.log_level, log::Level::kInfo);
  EXPECT_EQ(options.log_format, log::Format::kLogfmt);
  EXPECT_FALSE(options.once);
  EXPECT_EQ(options.replay_frames, std::nullopt);
}

TEST(Options, TakeEveryKindOfValue) {
  const Options options =
      parse_well({"--web.telemetry-path=/m", "--web.max-requests", "0",
                  "--collector.memory.period=1m30s", "--path.rootfs=/tmp", "--path.journal=/j",
                  "--kernel-log=-", "--log.level=warn", "--log.format=json", "--once"});
  EXPECT_EQ(options.telemetry_path, "/m");
  EXPECT_EQ(options.max_requests, 0U);
  EXPECT_EQ(options.collectors.at(0).period, seconds(90));
  EXPECT_EQ(options.paths.rootfs, "/tmp");
  EXPECT_EQ(options.paths.journal, "/j");
  EXPECT_EQ(options.kernel_log, "-");
  EXPECT_EQ(options.log_level, log::Level::kWarn);
  EXPECT_EQ(options.log_format, log::Format::kJson);
  EXPECT_TRUE(options.once);
}

TEST(Options, TakeSeveralListenAddresses) {
  const Options options =
      parse_well({"--web.listen-address=127.0.0.1:1", "--web.listen-address", ":2"});
  ASSERT_THAT(options.listen, SizeIs(2));
  EXPECT_EQ(options.listen[0].port, 1);
  EXPECT_EQ(options.listen[1].port, 2);
}

TEST(Options, SwitchCollectorsOnAndOff) {
  EXPECT_THAT(enabled(parse_well({"--collector.probes"})),
              ElementsAre("memory", "process", "probes"));
  EXPECT_THAT(enabled(parse_well({"--no-collector.memory"})), ElementsAre("process"));
}

TEST(Options, TheLaterOfACollectorPairWins) {
  EXPECT_THAT(enabled(parse_well({"--collector.memory", "--no-collector.memory"})),
              ElementsAre("process"));
  EXPECT_THAT(enabled(parse_well({"--no-collector.memory", "--collector.memory"})),
              ElementsAre("memory", "process"));
}

TEST(Options, DisableDefaultsLeavesWhatIsSwitchedOn) {
  EXPECT_THAT(enabled(parse_well({"--collector.disable-defaults"})), IsEmpty());
  EXPECT_THAT(enabled(parse_well({"--collector.disable-defaults", "--collector.memory"})),
              ElementsAre("memory"));
}

TEST(Options, DisableExporterMetricsLeavesOutTheProcess) {
  EXPECT_THAT(enabled(parse_well({"--web.disable-exporter-metrics", "--collector.process"})),
              ElementsAre("memory"));
}

TEST(Options, TakeFramesToReplay) {
  const TempTree tree;
  const Options options =
      parse_well({"--replay.frames=" + tree.path().string(), "--replay.speed=2.5"});
  EXPECT_EQ(options.replay_frames, tree.path());
  EXPECT_EQ(options.replay_speed, 2.5);
}

TEST(Options, HelpGoesToStdoutAndListsEveryOption) {
  const CommandLine line = parse({"--help"});
  EXPECT_FALSE(line.options);
  EXPECT_EQ(line.exit_code, 0);
  EXPECT_THAT(line.error, IsEmpty());
  for (const char* text :
       {"--web.listen-address", ":10151", "/metrics", "40", "--no-collector.probes",
        "--collector.memory.period", "(15s)", "--path.rootfs", "--config.file", "--once"}) {
    EXPECT_THAT(line.output, HasSubstr(text));
  }
  EXPECT_THAT(line.output, Not(HasSubstr("--replay"))) << "hidden";
}

TEST(Options, VersionGoesToStdout) {
  const CommandLine line = parse({"--version"});
  EXPECT_FALSE(line.options);
  EXPECT_EQ(line.exit_code, 0);
  EXPECT_THAT(line.error, IsEmpty());
  EXPECT_THAT(line.output, StartsWith("apu_exporter, version " + std::string(version())));
}

struct Refusal {
  std::vector<std::string> arguments;
  std::vector<std::string> named;  ///< what the line must hold
};

TEST(Options, RefuseEveryWrongOneByName) {
  const Refusal refusals[] = {
      {{"--bogus"}, {"--bogus"}},
      {{"stray"}, {"stray"}},
      {{"--web.listen-address=:1", "stray"}, {"stray"}},
      {{"--collector.bogus"}, {"--collector.bogus"}},
      {{"--no-collector.bogus"}, {"--no-collector.bogus"}},
      {{"--collector.bogus.period=1s"}, {"--collector.bogus.period"}},
      {{"--web.listen-address"}, {"--web.listen-address"}},
      {{"--web.listen-address="}, {"--web.listen-address"}},
      {{"--web.listen-address=[::1]:10151"}, {"--web.listen-address", "[::1]:10151", "IPv6"}},
      {{"--web.listen-address=/run/apu.sock"}, {"--web.listen-address", "unix socket"}},
      {{"--web.listen-address=:70000"}, {"--web.listen-address", ":70000"}},
      {{"--web.listen-address=localhost"}, {"--web.listen-address", "localhost"}},
      {{"--web.telemetry-path=metrics"}, {"--web.telemetry-path", "metrics"}},
      {{"--web.telemetry-path=/-/ready"}, {"--web.telemetry-path", "/-/ready"}},
      {{"--web.telemetry-path="}, {"--web.telemetry-path"}},
      {{"--web.telemetry-path=/a", "--web.telemetry-path=/b"}, {"--web.telemetry-path"}},
      {{"--web.max-requests=many"}, {"--web.max-requests", "many"}},
      {{"--web.max-requests=-1"}, {"--web.max-requests", "-1"}},
      {{"--web.max-requests=1001"}, {"--web.max-requests", "1001"}},
      {{"--web.max-requests=99999999999999999999"}, {"--web.max-requests"}},
      {{"--collector.memory=maybe"}, {"--collector.memory", "maybe"}},
      {{"--collector.memory.period=50ms"}, {"--collector.memory.period", "50ms"}},
      {{"--collector.memory.period=0s"}, {"--collector.memory.period", "0s"}},
      {{"--collector.memory.period=-15s"}, {"--collector.memory.period", "-15s"}},
      {{"--collector.memory.period=soon"}, {"--collector.memory.period", "soon"}},
      {{"--collector.memory.period="}, {"--collector.memory.period"}},
      {{"--log.level=loud"}, {"--log.level", "loud"}},
      {{"--log.format=xml"}, {"--log.format", "xml"}},
      {{"--kernel-log=/proc/kmsg"}, {"--kernel-log", "/proc/kmsg"}},
      {{"--kernel-log="}, {"--kernel-log"}},
      {{"--seat.pattern=["}, {"--seat.pattern", "["}},
      {{"--seat.pattern=llama[0-9"}, {"--seat.pattern", "llama[0-9"}},
      {{"--seat.pattern="}, {"--seat.pattern"}},
      {{"--path.procfs="}, {"--path.procfs"}},
      {{"--config.file=/nonexistent/apu.yml"}, {"--config.file", "/nonexistent/apu.yml"}},
      {{"--config.file="}, {"--config.file"}},
      {{"--replay.frames=/nonexistent"}, {"--replay.frames", "/nonexistent"}},
      {{"--replay.speed=0"}, {"--replay.speed", "0"}},
      {{"--once=perhaps"}, {"--once", "perhaps"}},
  };
  for (const Refusal& refusal : refusals) {
    SCOPED_TRACE(testing::PrintToString(refusal.arguments));
    const std::string error = refusal_of(refusal.arguments);
    for (const std::string& name : refusal.named) {
      EXPECT_THAT(error, HasSubstr(name));
    }
  }
}

class ConfiguredOptionsTest : public testing::Test {
 protected:
  /// The command line `arguments` with a configuration file that holds `text`.
  CommandLine parse_with(std::string_view text, std::vector<std::string> arguments = {}) const {
    tree_.write("apu.yml", text);
    arguments.push_back("--config.file=" + file());
    return parse(arguments);
  }

  Options parse_well_with(std::string_view text, std::vector<std::string> arguments = {}) const {
    const CommandLine line = parse_with(text, std::move(arguments));
    EXPECT_TRUE(line.options) << line.error;
    return line.options.value_or(Options{});
  }

  [[nodiscard]] std::string file() const { return (tree_.path() / "apu.yml").string(); }

  TempTree tree_;
};

TEST_F(ConfiguredOptionsTest, SetEveryKindOfValue) {
  const Options options = parse_well_with(R"(
web.telemetry-path: /m
web.max-requests: 5
web.disable-exporter-metrics: true
collector.probes: true
no-collector.memory: true
collector.probes.period: 5s
path.rootfs: /tmp
log.level: debug
once: true
)");
  EXPECT_EQ(options.telemetry_path, "/m");
  EXPECT_EQ(options.max_requests, 5U);
  EXPECT_THAT(enabled(options), ElementsAre("probes"));
  EXPECT_EQ(options.collectors.at(0).period, seconds(5));
  EXPECT_EQ(options.paths.rootfs, "/tmp");
  EXPECT_EQ(options.log_level, log::Level::kDebug);
  EXPECT_TRUE(options.once);
}

TEST_F(ConfiguredOptionsTest, TakeAListOfListenAddresses) {
  const Options options = parse_well_with("web.listen-address: ['127.0.0.1:1', ':2']\n");
  ASSERT_THAT(options.listen, SizeIs(2));
  EXPECT_EQ(options.listen[0].host, "127.0.0.1");
  EXPECT_EQ(options.listen[1].port, 2);
}

TEST_F(ConfiguredOptionsTest, TakeOneListenAddressWithoutAList) {
  const Options options = parse_well_with("web.listen-address: ':2'\n");
  ASSERT_THAT(options.listen, SizeIs(1));
  EXPECT_EQ(options.listen[0].port, 2);
}

TEST_F(ConfiguredOptionsTest, AFlagSetToFalseIsOff) {
  const Options options = parse_well_with("collector.memory: false\nonce: false\n");
  EXPECT_THAT(enabled(options), ElementsAre("process"));
  EXPECT_FALSE(options.once);
}

TEST_F(ConfiguredOptionsTest, ANegatedFlagSetToFalseIsOn) {
  EXPECT_THAT(enabled(parse_well_with("no-collector.probes: false\n")),
              ElementsAre("memory", "process", "probes"));
}

TEST_F(ConfiguredOptionsTest, TheCommandLineHasTheLastWord) {
  const Options options =
      parse_well_with("log.level: debug\nweb.listen-address: [':1', ':2']\nweb.max-requests: 5\n",
                      {"--log.level=error", "--web.listen-address=:3"});
  EXPECT_EQ(options.log_level, log::Level::kError);
  ASSERT_THAT(options.listen, SizeIs(1));
  EXPECT_EQ(options.listen[0].port, 3);
  EXPECT_EQ(options.max_requests, 5U);
}

TEST_F(ConfiguredOptionsTest, TheCommandLineSwitchesCollectorsBack) {
  EXPECT_THAT(enabled(parse_well_with("no-collector.memory: true\n", {"--collector.memory"})),
              ElementsAre("memory", "process"));
  EXPECT_THAT(enabled(parse_well_with("collector.probes: true\n", {"--no-collector.probes"})),
              ElementsAre("memory", "process"));
}

TEST_F(ConfiguredOptionsTest, AnEmptyFileChangesNothing) {
  EXPECT_EQ(parse_well_with("").max_requests, 40U);
}

struct ConfigRefusal {
  const char* text;
  const char* where;  ///< after the file's name
  const char* named;
};

TEST_F(ConfiguredOptionsTest, RefuseEveryMistakeByLine) {
  const ConfigRefusal refusals[] = {
      {"once: true\nbogus: 1\n", ":2:", "'bogus'"},
      {"--once: true\n", ":1:", "'--once'"},
      {"collector.bogus: true\n", ":1:", "'collector.bogus'"},
      {"config.file: other.yml\n", ":1:", "'config.file'"},
      {"help: true\n", ":1:", "'help'"},
      {"version: true\n", ":1:", "'version'"},
      {"once: true\nlog.level: loud\n", ":2:", "loud"},
      {"log.format: xml\n", ":1:", "log.format"},
      {"web.max-requests: many\n", ":1:", "web.max-requests"},
      {"web.max-requests: -1\n", ":1:", "web.max-requests"},
      {"web.listen-address: '[::1]:80'\n", ":1:", "IPv6"},
      {"collector.memory.period: 50ms\n", ":1:", "collector.memory.period"},
      {"collector.memory: maybe\n", ":1:", "maybe"},
      {"web.telemetry-path: metrics\n", ":1:", "web.telemetry-path"},
      {"web.telemetry-path: [/a, /b]\n", ":1:", "'web.telemetry-path' takes one value"},
      {"collector.memory: [true, false]\n", ":1:", "'collector.memory' takes one value"},
      {"log.level: info\nlog.level: warn\n", ":2:", "'log.level' is set twice"},
      {"collector.memory: true\nno-collector.memory: true\n", ":2:", "'no-collector.memory'"},
      {"log:\n  level: info\n", ":1:", "'log'"},
      {"log.level:\n", ":1:", "'log.level'"},
      {"once: true\n\tlog.level: info\n", ":2:", ""},
      {"- once\n", ":1:", "map"},
  };
  for (const ConfigRefusal& refusal : refusals) {
    SCOPED_TRACE(refusal.text);
    const CommandLine line = parse_with(refusal.text);
    expect_refused(line);
    EXPECT_THAT(line.error, HasSubstr(file() + refusal.where));
    EXPECT_THAT(line.error, HasSubstr(refusal.named));
  }
}

TEST_F(ConfiguredOptionsTest, RefuseAWrongValueEvenWhereTheCommandLineOverridesAnother) {
  const CommandLine line = parse_with("log.level: loud\n", {"--log.format=json"});
  expect_refused(line);
  EXPECT_THAT(line.error, HasSubstr("loud"));
}

TEST_F(ConfiguredOptionsTest, RefuseADirectoryAsTheFile) {
  EXPECT_THAT(refusal_of({"--config.file=" + tree_.path().string()}),
              HasSubstr(tree_.path().string()));
}

}  // namespace
}  // namespace apu
