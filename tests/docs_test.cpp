// Holds docs/metrics.md and README.md against the code's own tables.
// APU_UPDATE_DOCS=1 writes the generated part of docs/metrics.md anew.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <span>
#include <sstream>
#include <string>

#include "collectors/registry.h"
#include "exporter/health.h"
#include "exporter/sources.h"
#include "exporter/text.h"

namespace apu {
namespace {

constexpr std::string_view kBegin = "<!-- generated from the code: begin -->\n";
constexpr std::string_view kEnd = "<!-- generated from the code: end -->\n";

std::string path_of(std::string_view relative) {
  return fmt::format("{}/{}", APU_SOURCE_DIR, relative);
}

std::string read(std::string_view relative) {
  std::ifstream file(path_of(relative));
  std::stringstream content;
  content << file.rdbuf();
  return content.str();
}

std::string unit_of(std::string_view name) {
  for (const std::string_view unit : {"seconds", "bytes", "pages", "ratio"}) {
    if (name.find(fmt::format("_{}", unit)) != std::string_view::npos) {
      return std::string(unit);
    }
  }
  return "";
}

std::string row_of(const MetricInfo& metric) {
  std::string labels;
  for (const std::string_view label : label_names(metric)) {
    labels += fmt::format("{}`{}`", labels.empty() ? "" : ", ", label);
  }
  return fmt::format("| `{}` | {} | {} | {} | {} |\n", metric.name, to_text(metric.type), labels,
                     unit_of(metric.name), metric.help);
}

std::string section_of(std::string_view title, std::span<const MetricInfo> metrics) {
  std::string section = fmt::format(
      "\n## {}\n\n| metric | type | labels | unit | meaning (source) |\n|---|---|---|---|---|\n",
      title);
  for (const MetricInfo& metric : metrics) {
    section += row_of(metric);
  }
  return section;
}

std::string generated_reference() {
  std::string text(kBegin);
  text += section_of("The exporter itself", health_metrics());
  text += section_of("Sources", source_metrics());
  for (const CollectorSpec& spec : all_collectors()) {
    text += section_of(fmt::format("Collector `{}`", spec.name), spec.metrics);
  }
  text += "\n";
  return text += kEnd;
}

TEST(MetricReference, IsWhatTheCodeSays) {
  const std::string reference = read("docs/metrics.md");
  const size_t begin = reference.find(kBegin);
  const size_t end = reference.find(kEnd);
  ASSERT_NE(begin, std::string::npos);
  ASSERT_NE(end, std::string::npos);
  const std::string written = reference.substr(begin, end + kEnd.size() - begin);
  if (std::getenv("APU_UPDATE_DOCS") != nullptr) {
    std::ofstream(path_of("docs/metrics.md")) << reference.substr(0, begin) << generated_reference()
                                              << reference.substr(end + kEnd.size());
    return;
  }
  EXPECT_EQ(written, generated_reference());
}

TEST(Readme, NamesEachCollector) {
  const std::string readme = read("README.md");
  for (const CollectorSpec& spec : all_collectors()) {
    EXPECT_NE(readme.find(fmt::format("| `{}` |", spec.name)), std::string::npos) << spec.name;
  }
}

/// Lines of commands in the code blocks of a document.
std::vector<std::string> commands_of(const std::string& text) {
  std::vector<std::string> commands;
  bool in_block = false;
  for_each_line(text, [&](std::string_view line) {
    if (line.starts_with("```")) {
      in_block = !in_block;
    } else if (in_block) {
      commands.emplace_back(line);
    }
  });
  return commands;
}

TEST(Docs, TellNobodyToRunWhatHangsOnAWedgedHost) {
  // What reads cmdline, environ or maps: ps does for each of these columns.
  const std::regex hangs(
      R"((^|[ |;(])(ps (-[a-zA-Z]*f|[^|;]*aux|[^|;]*(comm|args|cmd|command)\b)|pgrep|pidof|htop|iotop|lsof|fuser|systemctl status|top -c))");
  const std::filesystem::path root(APU_SOURCE_DIR);
  size_t seen = 0;
  for (const char* folder : {"docs", "alerts/runbooks"}) {
    for (const auto& file : std::filesystem::directory_iterator(root / folder)) {
      if (file.path().extension() != ".md") {
        continue;
      }
      for (const std::string& command :
           commands_of(read(file.path().lexically_relative(root).string()))) {
        ++seen;
        EXPECT_FALSE(std::regex_search(command, hangs)) << file.path() << ": " << command;
      }
    }
  }
  EXPECT_GT(seen, 20U);
}

TEST(Changelog, HasThisVersion) {
  EXPECT_NE(read("CHANGELOG.md").find(fmt::format("## {}", version())), std::string::npos);
}

}  // namespace
}  // namespace apu
