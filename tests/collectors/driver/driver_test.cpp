#include "collectors/driver/driver.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include "collectors/driver/dynamic_debug.h"
#include "tests/support/collector_host.h"
#include "tests/support/temp_tree.h"

namespace apu {
namespace {

using namespace std::string_literals;

TEST(DynamicDebug, SeesWhatKfdPrints) {
  const auto prints = [](std::string_view line) { return *prints_kfd_debug(line); };
  EXPECT_FALSE(prints("# filename:lineno [module]function flags format"));
  EXPECT_TRUE(
      prints("drivers/gpu/drm/amd/amdgpu/../amdkfd/kfd_svm.c:1843 "
             "[amdgpu]svm_range_restore_work =p \"restore svm ranges\\012\""));
  EXPECT_TRUE(
      prints("/var/lib/dkms/amdgpu/6/build/amd/amdgpu/../amdkfd/kfd_chardev.c:9 "
             "[amdgpu]f =pmt \"p\" class:x"));
  EXPECT_FALSE(prints("drivers/gpu/drm/amd/amdgpu/../amdkfd/kfd_svm.c:1843 [amdgpu]f =_ \"p =p\""));
  EXPECT_FALSE(prints("init/main.c:1 [main]run_init_process =p \"amdkfd/ =p\""));
  EXPECT_FALSE(prints(""));
}

TEST(DynamicDebug, LineOfKfdWithoutFlagsIsMalformed) {
  EXPECT_EQ(prints_kfd_debug("a/amdkfd/kfd_svm.c:1 [amdgpu]f").error().kind, ErrorKind::kMalformed);
  EXPECT_EQ(prints_kfd_debug("a/amdkfd/kfd_svm.c:1 [amdgpu]f p \"\"").error().kind,
            ErrorKind::kMalformed);
}

TEST(ModulesDep, NamesTheFileOfAModule) {
  constexpr std::string_view kText =
      "kernel/drivers/gpu/drm/amd/amdxcp/amdxcp.ko.zst:\n"
      "kernel/x/amdgpu-helper.ko: updates/dkms/amdgpu.ko\n"
      "updates/dkms/amdgpu.ko.zst: kernel/x/amdgpu.ko\n"
      "amdgpu.ko\n";
  EXPECT_EQ(find_module_file(kText, "amdgpu"), "updates/dkms/amdgpu.ko.zst");
  EXPECT_FALSE(find_module_file(kText, "amdkfd"));
}

class DriverCollectorTest : public testing::Test {
 protected:
  DriverCollectorTest() {
    tree_.write("proc/sys/kernel/osrelease", "6.14.0-test\n");
    tree_.write("lib/modules/6.14.0-test/modules.dep", "kernel/gpu/amdgpu.ko: kernel/drm.ko\n");
    load('\1');
  }

  static std::string note(char id) {
    return "\4\0\0\0\x14\0\0\0\3\0\0\0GNU\0"s + std::string(20, id);
  }

  void load(char id) { tree_.write("sys/module/amdgpu/notes/.note.gnu.build-id", note(id)); }

  void install(const std::string& bytes) {
    tree_.write("lib/modules/6.14.0-test/kernel/gpu/amdgpu.ko", bytes);
  }

  DriverFacts facts() { return std::any_cast<DriverFacts>(collector_->collect()->facts); }

  TempTree tree_;
  CollectorHost host_{tree_.path()};
  std::unique_ptr<Collector> collector_ = make_driver_collector(host_.context());
};

TEST_F(DriverCollectorTest, ComparesWhatRunsWithTheDisk) {
  install(
      "\x7f"
      "ELF" +
      note('\1') + "code");
  EXPECT_EQ(facts().is_on_disk, true);
  install(
      "\x7f"
      "ELF" +
      note('\2') + "newer code");
  EXPECT_EQ(facts().is_on_disk, false);
  EXPECT_EQ(value_of(collector_->collect()->families, "apu_driver_differs_from_disk"), 1);
  load('\2');  // after the reboot
  EXPECT_EQ(facts().is_on_disk, true);
  EXPECT_EQ(value_of(collector_->collect()->families, "apu_driver_differs_from_disk"), 0);
}

TEST_F(DriverCollectorTest, ReadsACompressedModule) {
  const std::string bytes = std::string(100'000, 'x') + note('\1');
  std::string packed(bytes.size() + 1000, '\0');
  z_stream stream{};
  constexpr int kGzip = 15 + 16;
  ASSERT_EQ(::deflateInit2(&stream, 6, Z_DEFLATED, kGzip, 8, Z_DEFAULT_STRATEGY), Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  ASSERT_EQ(::deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  ::deflateEnd(&stream);
  install(packed);
  EXPECT_EQ(facts().is_on_disk, true);
}

TEST_F(DriverCollectorTest, SaysWhyItCannotTell) {
  EXPECT_FALSE(facts().is_on_disk);
  EXPECT_NE(facts().is_on_disk_unknown.find("amdgpu.ko"), std::string::npos);
  install("no note");
  EXPECT_NE(facts().is_on_disk_unknown.find("has no build id"), std::string::npos);
  tree_.remove("lib/modules/6.14.0-test/modules.dep");
  EXPECT_NE(facts().is_on_disk_unknown.find("modules.dep"), std::string::npos);
  tree_.write("sys/module/amdgpu/notes/.note.gnu.build-id", "garbage");
  EXPECT_FALSE(facts().is_on_disk);
  EXPECT_EQ(host_.parse_errors("sysfs"), 1);
  tree_.remove("sys/module/amdgpu/notes/.note.gnu.build-id");
  EXPECT_NE(facts().is_on_disk_unknown.find("no module"), std::string::npos);
  EXPECT_FALSE(has_family(collector_->collect()->families, "apu_driver_differs_from_disk"));
}

TEST_F(DriverCollectorTest, CountsDebugMessagesThatAreOn) {
  EXPECT_FALSE(facts().kfd_debug_messages);
  tree_.write("proc/dynamic_debug/control",
              "# filename:lineno [module]function flags format\n"
              "drivers/gpu/drm/amd/amdgpu/../amdkfd/kfd_svm.c:1 [amdgpu]f =p \"x\"\n"
              "drivers/gpu/drm/amd/amdgpu/../amdkfd/kfd_svm.c:2 [amdgpu]f =_ \"x\"\n"
              "drivers/gpu/drm/amd/amdgpu/../amdkfd/kfd_svm.c:3 [amdgpu]\n"
              "init/main.c:1 [main]f =p \"x\"\n");
  EXPECT_EQ(facts().kfd_debug_messages, 1U);
  EXPECT_EQ(host_.parse_errors("procfs"), 1);
  EXPECT_EQ(value_of(collector_->collect()->families, "apu_kfd_debug_messages_enabled"), 1);
}

}  // namespace
}  // namespace apu
