#pragma once

#include <string>
#include <vector>

namespace apu {

/// A line that a parser knows but could not read. The rest of its file is read all the same.
struct Problem {
  int line = 0;  ///< from 1
  std::string what;
};

using Problems = std::vector<Problem>;

}  // namespace apu
