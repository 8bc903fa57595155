// The tests' main: this program is also what the code under test executes as a helper.

#include <gtest/gtest.h>

#include <string_view>

#include "exporter/guarded_helper.h"

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == apu::kGuardedReaderOption) {
    return apu::run_guarded_reader();
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
