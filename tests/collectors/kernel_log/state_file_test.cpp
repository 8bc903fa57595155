#include "collectors/kernel_log/state_file.h"

#include <gtest/gtest.h>

#include "tests/support/temp_tree.h"
#include "tests/support/wait.h"

namespace apu {
namespace {

SavedState saved() {
  return {"b007", {}, {}};
}

TEST(StateFile, FifoIsNoStateAndHoldsUpNobody) {
  const TempTree tree;
  tree.make_fifo("state.json");
  tree.make_fifo("other.json.new");
  EXPECT_FALSE(load_state(tree.path() / "state.json"));
  EXPECT_FALSE(save_state(tree.path() / "other.json", saved()));
  EXPECT_TRUE(load_state(tree.path() / "other.json"));
}

TEST(StateFile, FileIsReplacedAsAWhole) {
  TempTree tree;
  const auto file = tree.path() / "state.json";
  EXPECT_EQ(load_state(file).error().kind, ErrorKind::kNotFound);
  ASSERT_FALSE(save_state(file, saved()));
  ASSERT_TRUE(load_state(file));
  SavedState next = saved();
  next.boot_id = "other";
  ASSERT_FALSE(save_state(file, next));
  EXPECT_EQ(load_state(file)->boot_id, "other");
  EXPECT_FALSE(std::filesystem::exists(file.string() + ".new"));
}

TEST(StateFile, DamagedFileIsNamed) {
  TempTree tree;
  tree.write("state.json", "{");
  const auto state = load_state(tree.path() / "state.json");
  ASSERT_FALSE(state);
  EXPECT_EQ(state.error().kind, ErrorKind::kMalformed);
  EXPECT_NE(state.error().message.find("state.json"), std::string::npos);
}

TEST(StateSaver, SavesTheNewestOfWhatWaits) {
  TempTree tree;
  const auto file = tree.path() / "state.json";
  StateSaver saver(file);
  for (int i = 0; i < 100; ++i) {
    SavedState state = saved();
    state.boot_id = std::to_string(i);
    saver.save(std::move(state));
  }
  EXPECT_TRUE(eventually([&] {
    const auto state = load_state(file);
    return state && state->boot_id == "99";
  }));
}

}  // namespace
}  // namespace apu
