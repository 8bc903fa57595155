// The floor of every reader of the journal: libsystemd's own walk over the entries of one boot that
// the exporter asks for, and the MESSAGE of each. Prints how many there are.
//   journal_floor DIRECTORY BOOT_ID

#include <systemd/sd-journal.h>

#include <cstdio>
#include <string>

namespace {

std::size_t walk(sd_journal* journal) {
  std::size_t entries = 0;
  while (sd_journal_next(journal) > 0) {
    const void* data = nullptr;
    std::size_t size = 0;
    entries += sd_journal_get_data(journal, "MESSAGE", &data, &size) == 0 ? 1 : 0;
  }
  return entries;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: journal_floor DIRECTORY BOOT_ID\n", stderr);
    return 2;
  }
  sd_journal* journal = nullptr;
  if (sd_journal_open_directory(&journal, argv[1], 0) < 0) {
    return 1;
  }
  sd_journal_add_match(journal, ("_BOOT_ID=" + std::string(argv[2])).c_str(), 0);
  sd_journal_add_conjunction(journal);
  for (const char* match : {"_TRANSPORT=kernel", "_PID=1", "_TRANSPORT=driver"}) {
    sd_journal_add_match(journal, match, 0);
    sd_journal_add_disjunction(journal);
  }
  std::printf("%zu\n", walk(journal));
  sd_journal_close(journal);
  return 0;
}
