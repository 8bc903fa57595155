#include "collectors/tcp_sockets.h"

#include <fmt/format.h>

#include <utility>

#include "collectors/report.h"

namespace apu {

TcpListeners read_tcp_listeners(const FileRoot& procfs, const SourceReporter& sources,
                                const std::string& source) {
  TcpListeners listeners;
  for (const char* file : {"self/net/tcp", "self/net/tcp6"}) {
    Problems problems;
    int number = 0;
    const Status error = procfs.for_each_line(file, [&](std::string_view line) {
      if (auto listener = parse_tcp_listener(line, ++number, problems)) {
        listeners.sockets.push_back(*std::move(listener));
      }
    });
    const bool none = error && error->kind == ErrorKind::kNotFound;  // tcp6: there is no IPv6
    listeners.complete = listeners.complete && (!error || none) && problems.empty();
    if (error && !none) {
      sources.parse_error(source, error->message);
    }
    report_problems(sources, source, file, problems);
  }
  return listeners;
}

std::optional<std::set<std::uint64_t>> read_sockets_of(const FileRoot& procfs, std::int64_t pid) {
  std::set<std::uint64_t> sockets;
  const Status error = procfs.for_each_link(
      fmt::format("{}/fd", pid), [&](std::string_view /*name*/, std::string_view target) {
        if (const auto inode = parse_socket_link(target)) {
          sockets.insert(*inode);
        }
      });
  return error ? std::nullopt : std::optional(std::move(sockets));
}

}  // namespace apu
