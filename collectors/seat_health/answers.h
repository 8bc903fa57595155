#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "exporter/result.h"

namespace apu {

/// A slot of a llama-server: it works on one task at a time.
struct ServerSlot {
  std::int64_t id = 0;
  bool busy = false;
  std::optional<std::int64_t> task;  ///< that it works on, or worked on last

  /// Tokens that it made. It still is the last task's count while a new one's prompt is read.
  std::optional<std::uint64_t> decoded;
  std::optional<std::uint64_t> prompt_done;  ///< tokens of the prompt that were read; newer builds

  bool operator==(const ServerSlot&) const = default;
};

/// Whether the body of a 200 to /health is a llama-server's.
///
/// Source: tools/server/server-context.cpp of llama.cpp, before examples/server/server.cpp.
/// Shape:  {"status": "ok"}; builds of early 2024 also say "no slot available", and count slots.
bool is_health_answer(std::string_view text);

/// Reads the body of a 200 to /slots.
///
/// Source: server_slot::to_json in tools/server/server-context.cpp of llama.cpp.
/// Shape:  an array of objects. "state" (0: idle) up to late 2024, then "is_processing";
/// "n_decoded"
///         beside these, then in the object "next_token", which newer builds put into an array of
///         one; "id_task" and "n_prompt_tokens_processed" where the build has them.
/// Errors: kMalformed: no JSON, no such array, a slot without its number or of which it is not told
///         whether it is busy, two of one number, or more than any server has. The message holds
///         nothing of the text.
///
/// Prompts and generated text stand in it too, by build and by option. Nothing but these numbers is
/// taken from it.
Result<std::vector<ServerSlot>> parse_slots(std::string_view text);

}  // namespace apu
