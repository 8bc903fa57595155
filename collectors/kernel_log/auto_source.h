#pragma once

#include <functional>
#include <memory>

#include "collectors/kernel_log/journal_query.h"
#include "collectors/kernel_log/source.h"

namespace apu {

/// Opens a journal for what the query wants, between its bounds; place and boot are the opener's.
using OpenJournal = std::function<std::unique_ptr<LogSource>(const JournalQuery& wanted)>;

/// The kernel log of a host that has a journal. Live records come from `kmsg`; from the journal
/// come those of this boot that the kernel's ring has lost, before the first that it has, those
/// that were overwritten before they were read, and what service managers say. No record counts
/// twice. Where the journal cannot be read kmsg goes on alone, and where kmsg cannot be read the
/// journal has the kernel's records as well.
std::unique_ptr<LogSource> make_auto_source(std::unique_ptr<LogSource> kmsg, OpenJournal journal);

}  // namespace apu
