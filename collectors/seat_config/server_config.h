#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "collectors/seat_config/http_address.h"

namespace apu {

/// What a process was told of a switch.
enum class Setting {
  kUnknown,  ///< it could not be read, or how this program reads it is not known
  kDefault,  ///< nothing; what then holds differs between builds
  kOff,
  kOn,
};

/// The label value: "", "default", "false", "true".
std::string_view to_label(Setting setting);

/// Which program's options a command line has.
enum class ServerProgram {
  kUnknown,       ///< its options are not looked at
  kLlamaServer,   ///< llama.cpp's, whose options have a name in the environment, too
  kOllamaRunner,  ///< "ollama runner": some of llama.cpp's options, with defaults of its own
  kVllm,          ///< its port alone
};

/// What a model server was told that decides how its memory is held, and where it can be asked.
/// Command lines and environments hold secrets: nothing but these keys is ever kept of them.
struct ServerConfig {
  ServerProgram program = ServerProgram::kUnknown;

  Setting mmap = Setting::kUnknown;         ///< the model's file is mapped
  Setting mlock = Setting::kUnknown;        ///< off where nothing asks for it
  Setting cpu_offload = Setting::kUnknown;  ///< tensors are told to stay with the CPU; likewise
  Setting userptr_for_paged_mem = Setting::kUnknown;  ///< HSA_USERPTR_FOR_PAGED_MEM
  Setting xnack = Setting::kUnknown;                  ///< HSA_XNACK
  std::string model;                  ///< the file's name without its path; empty: not known
  std::optional<std::uint16_t> port;  ///< absent where none is told
  std::optional<HttpAddress> http;    ///< of a llama-server both of whose files could be read

  bool operator==(const ServerConfig&) const = default;
};

/// The keys that one source, the command line or the environment, tells; nullopt for one of which
/// it says nothing.
struct ToldConfig {
  std::optional<Setting> mmap;
  std::optional<Setting> mlock;
  std::optional<Setting> direct_io;  ///< comes before mmap, where the file system can do it
  std::optional<Setting> cpu_offload;
  std::optional<Setting> userptr_for_paged_mem;
  std::optional<Setting> xnack;
  std::optional<std::string> model;
  std::optional<std::uint16_t> port;
  bool port_unreadable = false;  ///< told, and no number of one
  std::optional<ListenHost> host;
  std::optional<std::string> api_prefix;
  bool tls = false;  ///< a key or a certificate is named
};

struct ServerArguments {
  ServerProgram program = ServerProgram::kUnknown;
  ToldConfig told;
};

/// Reads /proc/PID/cmdline: arguments, each with a NUL behind it. `comm` names the program where
/// the first argument does not. A text that does not end in a NUL was overwritten by the process,
/// and tells nothing.
///
/// Source: proc_pid_cmdline_read in fs/proc/base.c; common/arg.cpp of llama.cpp. Since mid-2026
/// its --load-mode stands for --mmap, --no-mmap, --mlock and --direct-io.
ServerArguments parse_command_line(std::string_view cmdline, std::string_view comm);

/// Reads /proc/PID/environ: NAME=value, each with a NUL behind it.
///
/// Source: environ_read in fs/proc/base.c; Flag::Refresh in ROCR-Runtime's core/util/flag.h.
ToldConfig parse_environment(std::string_view environ);

/// Puts both together; nullopt for one that could not be read. The command line decides where both
/// tell a key.
ServerConfig combine(const std::optional<ServerArguments>& command_line,
                     const std::optional<ToldConfig>& environment);

/// All three in one.
ServerConfig parse_server_config(std::optional<std::string_view> cmdline,
                                 std::optional<std::string_view> environ, std::string_view comm);

}  // namespace apu
