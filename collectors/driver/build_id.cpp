#include "collectors/driver/build_id.h"

#include <cstring>

namespace apu {
namespace {

constexpr std::uint32_t kBuildIdType = 3;  // NT_GNU_BUILD_ID
constexpr std::string_view kName("GNU\0", 4);
constexpr size_t kHeadBytes = 3 * sizeof(std::uint32_t) + kName.size();

std::uint32_t word_at(std::string_view bytes, size_t index) {
  std::uint32_t word = 0;
  std::memcpy(&word, bytes.data() + index * sizeof word, sizeof word);
  return word;
}

std::string head_for(size_t id_bytes) {
  std::string head;
  for (const auto word : {static_cast<std::uint32_t>(kName.size()),
                          static_cast<std::uint32_t>(id_bytes), kBuildIdType}) {
    head.append(reinterpret_cast<const char*>(&word), sizeof word);
  }
  return head.append(kName);
}

}  // namespace

std::optional<std::string> parse_build_id_note(std::string_view note) {
  if (note.size() <= kHeadBytes || !note.starts_with(head_for(word_at(note, 1)))) {
    return std::nullopt;
  }
  const std::uint32_t id_bytes = word_at(note, 1);
  if (id_bytes == 0 || note.size() - kHeadBytes < id_bytes) {
    return std::nullopt;
  }
  return std::string(note.substr(kHeadBytes, id_bytes));
}

BuildIdSearch::BuildIdSearch(std::string_view id)
    : head_(head_for(id.size())), note_(head_ + std::string(id)) {}

void BuildIdSearch::feed(std::string_view bytes) {
  // What lies across two pieces is found in their seam, what lies in one in the piece itself.
  const size_t overlap = note_.size() - 1;
  std::string seam = tail_ + std::string(bytes.substr(0, overlap));
  search(seam);
  search(bytes);
  if (bytes.size() >= overlap) {
    tail_ = bytes.substr(bytes.size() - overlap);
  } else {
    tail_ = seam.size() > overlap ? seam.substr(seam.size() - overlap) : seam;
  }
}

std::optional<bool> BuildIdSearch::found() const {
  return any_ ? std::optional(same_) : std::nullopt;
}

void BuildIdSearch::search(std::string_view bytes) {
  any_ = any_ || bytes.find(head_) != std::string_view::npos;
  same_ = same_ || bytes.find(note_) != std::string_view::npos;
}

}  // namespace apu
