#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace apu {

/// The GNU build id in an ELF note, as bytes; nullopt where `note` is none.
///
/// Source: /sys/module/NAME/notes/.note.gnu.build-id (module_notes_read in kernel/module/sysfs.c):
/// sizes of name and id and a type, 32 bits each in the host's order, "GNU\0", and the id.
std::optional<std::string> parse_build_id_note(std::string_view note);

/// Finds a build id in a module's file, which is fed piece by piece and never held as a whole: with
/// what its debug information adds, a driver of hundreds of megabytes is possible.
class BuildIdSearch {
 public:
  explicit BuildIdSearch(std::string_view id);

  void feed(std::string_view bytes);

  /// Whether the file has this id; nullopt where it has no id of that length at all.
  [[nodiscard]] std::optional<bool> found() const;

 private:
  void search(std::string_view bytes);

  std::string head_;  // of a note that holds such an id
  std::string note_;  // that head and the id
  std::string tail_;  // the end of what was searched, where a note may begin
  bool any_ = false;
  bool same_ = false;
};

}  // namespace apu
