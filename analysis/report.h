#pragma once

#include <string>

#include "analysis/analysis.h"

namespace apu {

/// For a person, 100 columns: the answer in the first line, then the evidence.
std::string to_report_text(const Analysis& analysis);

/// The same for a program: docs/analyze-json.md.
std::string to_report_json(const Analysis& analysis);

/// The kernel_log families of the last boot, evaluated at the time of its last line, in the text
/// exposition format; and what could not be read.
std::string to_report_metrics(const Analysis& analysis);

/// What to do next, one advice a string.
std::vector<std::string> advice_for(const Analysis& analysis);

/// What the log of `boot` cannot show, one limit a string.
std::vector<std::string> limits_of(const BootAnalysis& boot);

}  // namespace apu
