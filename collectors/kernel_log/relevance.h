#pragma once

#include <string_view>

namespace apu {

/// Whether KernelLogState can do more with a message of the kernel than count it as a line. Cheap;
/// true for some that stand for nothing. Holds for the first line that a kernel prints, too.
bool may_matter(std::string_view message);

/// The same for a message of a service manager or of journald.
bool may_matter_of_others(std::string_view message);

}  // namespace apu
