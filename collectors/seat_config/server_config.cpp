#include "collectors/seat_config/server_config.h"

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "exporter/text.h"

namespace apu {
namespace {

constexpr size_t kMaxFileName = 255;  // NAME_MAX

/// The texts that have a NUL behind them.
std::vector<std::string_view> split_at_nul(std::string_view text) {
  std::vector<std::string_view> parts;
  for (size_t end = text.find('\0'); end != std::string_view::npos; end = text.find('\0')) {
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  return parts;
}

std::string_view base_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1);  // npos + 1 is 0
}

Setting to_setting(bool on) {
  return on ? Setting::kOn : Setting::kOff;
}

// --- values: how each is read, and what it tells

/// As llama.cpp reads a switch.
Setting parse_switch(std::string_view value) {
  if (value == "1" || value == "true" || value == "on" || value == "enabled") {
    return Setting::kOn;
  }
  const bool off = value == "0" || value == "false" || value == "off" || value == "disabled";
  return off ? Setting::kOff : Setting::kUnknown;
}

/// As the ROCm runtime does.
Setting parse_hsa_switch(std::string_view value) {
  return value == "0" || value == "1" ? to_setting(value == "1") : Setting::kUnknown;
}

void tell_mmap(ToldConfig& told, std::string_view value) {
  told.mmap = parse_switch(value);
}

/// Older builds take it for a switch, newer ones for one that is off whatever its value.
void tell_no_mmap(ToldConfig& told, std::string_view value) {
  told.mmap = parse_switch(value) == Setting::kOn ? Setting::kOff : Setting::kUnknown;
}

void tell_mlock(ToldConfig& told, std::string_view value) {
  told.mlock = parse_switch(value);
}

void tell_direct_io(ToldConfig& told, std::string_view value) {
  told.direct_io = parse_switch(value);
}

void tell_load_mode(ToldConfig& told, std::string_view value) {
  struct Mode {
    std::string_view name;
    Setting mmap, mlock;
  };

  // Whether "mlock" maps the file depends on whether the build has "mmap+mlock", too.
  static constexpr std::array kModes{Mode{"auto", Setting::kDefault, Setting::kOff},
                                     Mode{"none", Setting::kOff, Setting::kOff},
                                     Mode{"dio", Setting::kOff, Setting::kOff},
                                     Mode{"mmap", Setting::kOn, Setting::kOff},
                                     Mode{"mlock", Setting::kUnknown, Setting::kOn},
                                     Mode{"mmap+mlock", Setting::kOn, Setting::kOn}};
  const auto* found = std::find_if(kModes.begin(), kModes.end(),
                                   [&](const Mode& each) { return each.name == value; });
  const bool known = found != kModes.end();
  told.mmap = known ? found->mmap : Setting::kUnknown;
  told.mlock = known ? found->mlock : Setting::kUnknown;
  told.direct_io = Setting::kOff;  // a build that has it has no such switch
}

/// One override is enough, whatever others say.
void tell_cpu_offload(ToldConfig& told, Setting setting) {
  if (told.cpu_offload != Setting::kOn) {
    told.cpu_offload = setting;
  }
}

void tell_cpu_moe(ToldConfig& told, std::string_view value) {
  tell_cpu_offload(told, parse_switch(value));
}

void tell_cpu_layers(ToldConfig& told, std::string_view value) {
  const auto layers = parse_number<std::int64_t>(value);
  tell_cpu_offload(told, layers ? to_setting(*layers > 0) : Setting::kUnknown);
}

/// "PATTERN=BUFFER,...".
void tell_tensor_override(ToldConfig& told, std::string_view value) {
  bool to_cpu = false;
  while (!value.empty()) {
    const std::string_view item = value.substr(0, value.find(','));
    const size_t sign = item.find('=');
    to_cpu |= sign != std::string_view::npos && item.substr(sign + 1).starts_with("CPU");
    value.remove_prefix(std::min(item.size() + 1, value.size()));
  }
  tell_cpu_offload(told, to_setting(to_cpu));
}

/// Of an address, what follows the path may be a token.
std::string_view without_query(std::string_view value) {
  return value.find("://") == std::string_view::npos ? value
                                                     : value.substr(0, value.find_first_of("?#"));
}

void tell_model(ToldConfig& told, std::string_view value) {
  const std::string_view name = base_name(without_query(value));
  const bool is_file = !name.empty() && name != "." && name != ".." && name.size() <= kMaxFileName;
  told.model = is_file ? name : "";
}

/// For options whose value is secret: it must not be taken for an option.
void tell_nothing(ToldConfig& /*told*/, std::string_view /*value*/) {}

void tell_port(ToldConfig& told, std::string_view value) {
  told.port = parse_number<std::uint16_t>(value);
  told.port_unreadable = !told.port;
}

void tell_host(ToldConfig& told, std::string_view value) {
  told.host = parse_listen_host(value);
}

void tell_api_prefix(ToldConfig& told, std::string_view value) {
  told.api_prefix = value;
}

void tell_tls(ToldConfig& told, std::string_view value) {
  told.tls = told.tls || !value.empty();
}

void tell_userptr(ToldConfig& told, std::string_view value) {
  told.userptr_for_paged_mem = parse_hsa_switch(value);
}

void tell_xnack(ToldConfig& told, std::string_view value) {
  told.xnack = parse_hsa_switch(value);
}

// --- names

struct Key {
  std::string_view name;
  void (*tell)(ToldConfig&, std::string_view value);
  std::string_view value;  ///< of an option that stands for one; empty: the next argument is it
};

constexpr std::array kLlamaOptions{Key{"--api-key", tell_nothing, {}},
                                   Key{"--api-key-file", tell_nothing, {}},
                                   Key{"--hf-token", tell_nothing, {}},
                                   Key{"-hft", tell_nothing, {}},
                                   Key{"-m", tell_model, {}},
                                   Key{"--model", tell_model, {}},
                                   Key{"--port", tell_port, {}},
                                   Key{"--host", tell_host, {}},
                                   Key{"--api-prefix", tell_api_prefix, {}},
                                   Key{"--ssl-key-file", tell_tls, {}},
                                   Key{"--ssl-cert-file", tell_tls, {}},
                                   Key{"--mmap", tell_mmap, "1"},
                                   Key{"--no-mmap", tell_mmap, "0"},
                                   Key{"--mlock", tell_mlock, "1"},
                                   Key{"-dio", tell_direct_io, "1"},
                                   Key{"--direct-io", tell_direct_io, "1"},
                                   Key{"-ndio", tell_direct_io, "0"},
                                   Key{"--no-direct-io", tell_direct_io, "0"},
                                   Key{"-lm", tell_load_mode, {}},
                                   Key{"--load-mode", tell_load_mode, {}},
                                   Key{"-ot", tell_tensor_override, {}},
                                   Key{"--override-tensor", tell_tensor_override, {}},
                                   Key{"-cmoe", tell_cpu_moe, "1"},
                                   Key{"--cpu-moe", tell_cpu_moe, "1"},
                                   Key{"-ncmoe", tell_cpu_layers, {}},
                                   Key{"--n-cpu-moe", tell_cpu_layers, {}},
                                   Key{"-ncffn", tell_cpu_layers, {}},
                                   Key{"--n-cpu-ffn", tell_cpu_layers, {}}};

constexpr std::array kOllamaOptions{Key{"--model", tell_model, {}}, Key{"--port", tell_port, {}},
                                    Key{"--no-mmap", tell_mmap, "0"},
                                    Key{"--mlock", tell_mlock, "1"}};

constexpr std::array kVllmOptions{Key{"--port", tell_port, {}}};

constexpr std::array kVariables{Key{"LLAMA_ARG_MODEL", tell_model, {}},
                                Key{"LLAMA_ARG_PORT", tell_port, {}},
                                Key{"LLAMA_ARG_HOST", tell_host, {}},
                                Key{"LLAMA_ARG_API_PREFIX", tell_api_prefix, {}},
                                Key{"LLAMA_ARG_SSL_KEY_FILE", tell_tls, {}},
                                Key{"LLAMA_ARG_SSL_CERT_FILE", tell_tls, {}},
                                Key{"LLAMA_ARG_MMAP", tell_mmap, {}},
                                Key{"LLAMA_ARG_NO_MMAP", tell_no_mmap, {}},
                                Key{"LLAMA_ARG_MLOCK", tell_mlock, {}},
                                Key{"LLAMA_ARG_DIO", tell_direct_io, {}},
                                Key{"LLAMA_ARG_LOAD_MODE", tell_load_mode, {}},
                                Key{"LLAMA_ARG_OVERRIDE_TENSOR", tell_tensor_override, {}},
                                Key{"LLAMA_ARG_CPU_MOE", tell_cpu_moe, {}},
                                Key{"LLAMA_ARG_N_CPU_MOE", tell_cpu_layers, {}},
                                Key{"LLAMA_ARG_N_CPU_FFN", tell_cpu_layers, {}},
                                Key{"HSA_USERPTR_FOR_PAGED_MEM", tell_userptr, {}},
                                Key{"HSA_XNACK", tell_xnack, {}}};

std::span<const Key> options_of(ServerProgram program) {
  switch (program) {
    case ServerProgram::kLlamaServer:
      return kLlamaOptions;
    case ServerProgram::kOllamaRunner:
      return kOllamaOptions;
    case ServerProgram::kVllm:
      return kVllmOptions;
    case ServerProgram::kUnknown:
      break;
  }
  return {};
}

const Key* find_key(std::span<const Key> keys, std::string_view name) {
  const auto found =
      std::find_if(keys.begin(), keys.end(), [&](const Key& key) { return key.name == name; });
  return found == keys.end() ? nullptr : &*found;
}

ServerProgram program_of(const std::vector<std::string_view>& arguments, std::string_view comm) {
  const std::string_view command = arguments.size() > 1 ? arguments[1] : "";
  for (const std::string_view name : {base_name(arguments.front()), comm}) {
    if (name.starts_with("llama-server") || (name == "llama" && command == "serve")) {
      return ServerProgram::kLlamaServer;
    }
    if (name == "ollama" && command == "runner") {
      return ServerProgram::kOllamaRunner;
    }
    if (name == "vllm" || name.starts_with("VLLM::")) {
      return ServerProgram::kVllm;
    }
  }
  return ServerProgram::kUnknown;
}

/// An argument as its option's name, and the value behind its "=".
std::pair<std::string, std::optional<std::string_view>> split_option(std::string_view argument) {
  if (!argument.starts_with("--")) {
    return {std::string(argument), std::nullopt};
  }
  const size_t sign = argument.find('=');
  std::string name(argument.substr(0, sign));
  std::replace(name.begin(), name.end(), '_', '-');  // llama.cpp takes both
  return {name,
          sign == std::string_view::npos ? std::nullopt : std::optional(argument.substr(sign + 1))};
}

ToldConfig read_options(std::span<const std::string_view> arguments, std::span<const Key> keys) {
  ToldConfig told;
  for (size_t i = 1; i < arguments.size(); ++i) {
    const auto [name, inline_value] = split_option(arguments[i]);
    const Key* key = find_key(keys, name);
    if (key == nullptr) {
      continue;
    }
    if (!key->value.empty()) {
      key->tell(told, key->value);
    } else if (inline_value) {
      key->tell(told, *inline_value);
    } else if (i + 1 < arguments.size()) {
      key->tell(told, arguments[++i]);
    }
  }
  return told;
}

/// Takes what another variable tells. Which of two decides depends on the build.
void agree(std::optional<Setting>& told, const std::optional<Setting>& other) {
  if (other) {
    told = !told || told == other ? *other : Setting::kUnknown;
  }
}

/// What is told of a key: by the command line, else by the environment, else `otherwise`.
Setting decide(const std::optional<Setting>& option, const std::optional<ToldConfig>& environment,
               std::optional<Setting> ToldConfig::*member, Setting otherwise) {
  if (option) {
    return *option;
  }
  return environment ? ((*environment).*member).value_or(otherwise) : Setting::kUnknown;
}

HttpAddress to_http_address(const ToldConfig& told, const ToldConfig& environment) {
  HttpAddress address;
  address.host = told.host.value_or(environment.host.value_or(ListenHost::kLocal));
  address.tls = told.tls || environment.tls;
  const ToldConfig& teller = told.port || told.port_unreadable ? told : environment;
  if (teller.port_unreadable || teller.port == 0) {
    address.port.reset();
  } else {
    address.port = teller.port.value_or(HttpAddress::kDefaultPort);
  }
  const std::string prefix = told.api_prefix.value_or(environment.api_prefix.value_or(""));
  address.prefix = is_url_prefix(prefix) ? std::optional(prefix) : std::nullopt;
  return address;
}

void add_llama_server(ServerConfig& config, const ToldConfig& told,
                      const std::optional<ToldConfig>& environment) {
  const auto setting = [&](std::optional<Setting> ToldConfig::*member, Setting otherwise) {
    return decide(told.*member, environment, member, otherwise);
  };
  config.mmap = setting(&ToldConfig::mmap, Setting::kDefault);
  const auto direct_io = environment && !told.direct_io ? environment->direct_io : told.direct_io;
  if (direct_io.value_or(Setting::kOff) != Setting::kOff && config.mmap != Setting::kOff) {
    config.mmap = Setting::kUnknown;
  }
  config.mlock = setting(&ToldConfig::mlock, Setting::kOff);
  config.cpu_offload = setting(&ToldConfig::cpu_offload, Setting::kOff);
  if (environment && !told.model) {
    config.model = environment->model.value_or("");
  }
  if (environment && !told.port) {
    config.port = environment->port;
  }
  if (environment) {
    config.http = to_http_address(told, *environment);
  }
}

}  // namespace

std::string_view to_label(Setting setting) {
  switch (setting) {
    case Setting::kDefault:
      return "default";
    case Setting::kOff:
      return "false";
    case Setting::kOn:
      return "true";
    case Setting::kUnknown:
      break;
  }
  return "";
}

ServerArguments parse_command_line(std::string_view cmdline, std::string_view comm) {
  const auto arguments = split_at_nul(cmdline);
  if (arguments.empty() || !cmdline.ends_with('\0')) {
    return {};
  }
  const ServerProgram program = program_of(arguments, comm);
  return {program, read_options(arguments, options_of(program))};
}

ToldConfig parse_environment(std::string_view environ) {
  ToldConfig told;
  for (const std::string_view variable : split_at_nul(environ)) {
    const size_t sign = variable.find('=');
    const Key* key = find_key(kVariables, variable.substr(0, sign));
    if (key == nullptr || sign == std::string_view::npos) {
      continue;
    }
    ToldConfig one;
    one.cpu_offload = told.cpu_offload;
    key->tell(one, variable.substr(sign + 1));
    told.cpu_offload = one.cpu_offload;
    told.model = one.model ? one.model : told.model;
    told.port = one.port ? one.port : told.port;
    told.port_unreadable = told.port_unreadable || one.port_unreadable;
    told.host = one.host ? one.host : told.host;
    told.api_prefix = one.api_prefix ? one.api_prefix : told.api_prefix;
    told.tls = told.tls || one.tls;
    agree(told.mmap, one.mmap);
    agree(told.mlock, one.mlock);
    agree(told.direct_io, one.direct_io);
    agree(told.userptr_for_paged_mem, one.userptr_for_paged_mem);
    agree(told.xnack, one.xnack);
  }
  return told;
}

ServerConfig combine(const std::optional<ServerArguments>& command_line,
                     const std::optional<ToldConfig>& environment) {
  ServerConfig config;
  if (environment) {
    config.userptr_for_paged_mem = environment->userptr_for_paged_mem.value_or(Setting::kDefault);
    config.xnack = environment->xnack.value_or(Setting::kDefault);
  }
  if (!command_line) {
    return config;
  }
  const ToldConfig& told = command_line->told;
  config.program = command_line->program;
  config.mmap = told.mmap.value_or(Setting::kUnknown);
  config.mlock = told.mlock.value_or(Setting::kUnknown);
  config.model = told.model.value_or("");
  config.port = told.port;
  if (command_line->program == ServerProgram::kLlamaServer) {
    add_llama_server(config, told, environment);
  }
  return config;
}

ServerConfig parse_server_config(std::optional<std::string_view> cmdline,
                                 std::optional<std::string_view> environ, std::string_view comm) {
  return combine(cmdline ? std::optional(parse_command_line(*cmdline, comm)) : std::nullopt,
                 environ ? std::optional(parse_environment(*environ)) : std::nullopt);
}

}  // namespace apu
