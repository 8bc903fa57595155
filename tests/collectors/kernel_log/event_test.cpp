#include "collectors/kernel_log/event.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace apu {
namespace {

constexpr const char* kRefusal = "SVM mapping failed, exceeds resident system memory limit";

TEST(StripDriverPrefix, KnowsEveryPrefixThatTheDriverHasHad) {
  const std::pair<const char*, const char*> prefixes[] = {
      {"amdgpu: ", ""},
      {"amdgpu 0000:c5:00.0: amdgpu: ", "0000:c5:00.0"},
      {"amdgpu 0000:03:00.0: ", "0000:03:00.0"},
      {"amdgpu 0000:c5:00.0: [drm] ", "0000:c5:00.0"},
      {"amdgpu 0000:c5:00.0: [drm] *ERROR* ", "0000:c5:00.0"},
      {"amdgpu ffff:ff:1f.7: amdgpu: ", "ffff:ff:1f.7"},
      {"kfd kfd: amdgpu: ", ""},
      {"kfd kfd: ", ""},
      {"kfd kfd: [drm] *ERROR* ", ""}};
  for (const auto& [prefix, gpu] : prefixes) {
    const std::string message = std::string(prefix) + "text: of it";
    const auto stripped = strip_driver_prefix(message);
    ASSERT_TRUE(stripped) << prefix;
    EXPECT_EQ(stripped->gpu, gpu) << prefix;
    EXPECT_EQ(stripped->text, "text: of it") << prefix;
    const std::string refusal = std::string(prefix) + kRefusal;
    const auto event = classify(refusal);
    ASSERT_TRUE(event) << prefix;
    EXPECT_EQ(event->kind, EventKind::kSvmMappingFailed) << prefix;
    EXPECT_EQ(event->gpu, gpu) << prefix;
  }
}

TEST(StripDriverPrefix, LeavesOtherMessagesAlone) {
  for (const char* message :
       {"", "text", "amdgpu:text", " amdgpu: text", "Amdgpu: text", "amdgpu text", "kfd: text",
        "kfd kfd text", "xamdgpu: text", "amdgpu 0000:c5:00.0 text", "amdgpu 0000:c5:00.0:text",
        "amdgpu 0000:C5:00.0: text", "amdgpu 0000:c5:00.8: text", "amdgpu 000:c5:00.0: text",
        "amdgpu 0000:c5:00.0", "amdgpu 0000:c5", "i915 0000:00:02.0: text"}) {
    EXPECT_FALSE(strip_driver_prefix(message)) << message;
  }
}

TEST(StripDriverPrefix, MessageMayBeEmpty) {
  EXPECT_EQ(strip_driver_prefix("amdgpu: ")->text, "");
  EXPECT_EQ(strip_driver_prefix("amdgpu 0000:c5:00.0: ")->text, "");
}

TEST(Classify, TextIsAnchored) {
  for (const std::string& message :
       {std::string(kRefusal), "amdgpu: x " + std::string(kRefusal),
        "amdgpu: amdgpu: " + std::string(kRefusal), "i915: " + std::string(kRefusal),
        std::string("amdgpu: SVM mapping failed, exceeds"), "amdgpu:  " + std::string(kRefusal),
        std::string("amdgpu: svm mapping failed, exceeds resident system memory limit"),
        std::string("amdgpu: Address: 0x7f7149ccc000 already allocated by SVM")}) {
    EXPECT_FALSE(classify(message)) << message;
  }
  EXPECT_TRUE(classify("amdgpu: " + std::string(kRefusal) + " (new detail)"));
}

TEST(Classify, ProcessNameThatImitatesAMessageDoesNotCount) {
  for (const char* message :
       {"amdgpu: SVM map[4712]: segfault at 0 ip 0000000000401136 sp 00007ffc11a0b2d0 error 4",
        "amdgpu: Process SVM mapping failed, exceeds pid 4713 thread SVM mapping failed, exceeds",
        "amdgpu 0000:c5:00.0: amdgpu:  Process SVM mapping fai pid 7304 thread SVM mapping fai",
        "oom_reaper: reaped process 4711 (amdgpu: SVM map), now anon-rss:0kB"}) {
    EXPECT_FALSE(classify(message)) << message;
  }
}

TEST(EventKinds, HaveLabelsOfTheirOwn) {
  std::set<std::string_view> labels;
  for (const EventKind kind : all_event_kinds()) {
    EXPECT_TRUE(labels.insert(to_label(kind)).second) << to_label(kind);
  }
  EXPECT_TRUE(labels.contains("svm_mapping_failed"));
}

}  // namespace
}  // namespace apu
