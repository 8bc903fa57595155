#include "collectors/seat_config/server_config.h"

#include <gtest/gtest.h>

#include <initializer_list>

namespace apu {
namespace {

/// As procfs has them: with a NUL behind each.
std::string with_nuls(std::initializer_list<std::string_view> texts) {
  std::string all;
  for (const std::string_view text : texts) {
    all += text;
    all += '\0';
  }
  return all;
}

ServerConfig llama(std::initializer_list<std::string_view> options,
                   std::initializer_list<std::string_view> variables = {}) {
  return parse_server_config(with_nuls({"/usr/bin/llama-server"}) + with_nuls(options),
                             with_nuls(variables), "llama-server");
}

TEST(ServerConfig, ToldNothingIsDefaultWhereBuildsDifferAndOffWhereTheyDoNot) {
  ServerConfig expected;
  expected.program = ServerProgram::kLlamaServer;
  expected.http = HttpAddress{};
  expected.mmap = Setting::kDefault;
  expected.mlock = Setting::kOff;
  expected.cpu_offload = Setting::kOff;
  expected.userptr_for_paged_mem = Setting::kDefault;
  expected.xnack = Setting::kDefault;
  EXPECT_EQ(llama({}), expected);
  EXPECT_EQ(to_label(Setting::kDefault), "default");
  EXPECT_EQ(to_label(Setting::kOff), "false");
  EXPECT_EQ(to_label(Setting::kOn), "true");
  EXPECT_EQ(to_label(Setting::kUnknown), "");
}

TEST(ServerConfig, OptionsDecideAndTheLastOneOfAKind) {
  EXPECT_EQ(llama({"--no-mmap"}).mmap, Setting::kOff);
  EXPECT_EQ(llama({"--no_mmap"}).mmap, Setting::kOff);
  EXPECT_EQ(llama({"--no-mmap", "--mmap"}).mmap, Setting::kOn);
  EXPECT_EQ(llama({"--mlock"}).mlock, Setting::kOn);
  EXPECT_EQ(llama({"--port", "8081"}).port, 8081);
  EXPECT_EQ(llama({"--port", "99999"}).port, std::nullopt);
  EXPECT_EQ(llama({"--port"}).port, std::nullopt);
}

TEST(ServerConfig, AddressOfALlamaServer) {
  const HttpAddress defaults = llama({}).http.value();
  EXPECT_EQ(defaults.port, 8080);
  EXPECT_EQ(defaults.host, ListenHost::kLocal);
  EXPECT_EQ(defaults.prefix, "");
  EXPECT_FALSE(defaults.tls);
  EXPECT_EQ(llama({"--port", "8081"}, {"LLAMA_ARG_PORT=8082"}).http->port, 8081);
  EXPECT_EQ(llama({}, {"LLAMA_ARG_PORT=8082"}).http->port, 8082);
  for (const char* port : {"0", "99999", "x", ""}) {
    EXPECT_EQ(llama({"--port", port}, {"LLAMA_ARG_PORT=8082"}).http->port, std::nullopt) << port;
  }
  EXPECT_EQ(llama({}, {"LLAMA_ARG_PORT=x"}).http->port, std::nullopt);
  EXPECT_EQ(llama({"--api-prefix", "/a/b-1"}).http->prefix, "/a/b-1");
  EXPECT_EQ(llama({}, {"LLAMA_ARG_API_PREFIX=/a"}).http->prefix, "/a");
  for (const char* prefix : {"a", "/a?b", "/a b", "/a#b", "/%61", "@host"}) {
    EXPECT_EQ(llama({"--api-prefix", prefix}).http->prefix, std::nullopt) << prefix;
  }
  EXPECT_TRUE(llama({"--ssl-key-file", "/k"}).http->tls);
  EXPECT_TRUE(llama({"--ssl-cert-file=/k"}).http->tls);
  EXPECT_TRUE(llama({}, {"LLAMA_ARG_SSL_KEY_FILE=/k"}).http->tls);
  EXPECT_FALSE(llama({}, {"LLAMA_ARG_SSL_KEY_FILE="}).http->tls);
}

TEST(ServerConfig, HostsOfALlamaServer) {
  const auto host = [](std::string_view value) { return llama({"--host", value}).http->host; };
  for (const char* local : {"127.0.0.1", "127.1.2.3", "localhost", "0.0.0.0", "::", "::1"}) {
    EXPECT_EQ(host(local), ListenHost::kLocal) << local;
  }
  for (const char* other :
       {"192.168.1.5", "127.evil.example", "127.0.0.1.example", "2001:db8::1", "host", ""}) {
    EXPECT_EQ(host(other), ListenHost::kElsewhere) << other;
  }
  EXPECT_EQ(host("/run/llama.sock"), ListenHost::kUnixSocket);
  EXPECT_EQ(llama({}, {"LLAMA_ARG_HOST=192.168.1.5"}).http->host, ListenHost::kElsewhere);
}

TEST(ServerConfig, AddressIsKnownOfALlamaServerBothOfWhoseFilesWereRead) {
  const std::string cmdline = with_nuls({"llama-server"});
  EXPECT_FALSE(parse_server_config(cmdline, std::nullopt, "").http);
  EXPECT_FALSE(parse_server_config(std::nullopt, "", "").http);
  EXPECT_FALSE(parse_server_config(with_nuls({"vllm", "--port", "8080"}), "", "").http);
}

TEST(ServerConfig, LoadModeStandsForBoth) {
  const auto mode = [](std::string_view value) {
    const ServerConfig config = llama({"--load-mode", value});
    return std::pair(config.mmap, config.mlock);
  };
  EXPECT_EQ(mode("auto"), std::pair(Setting::kDefault, Setting::kOff));
  EXPECT_EQ(mode("none"), std::pair(Setting::kOff, Setting::kOff));
  EXPECT_EQ(mode("dio"), std::pair(Setting::kOff, Setting::kOff));
  EXPECT_EQ(mode("mmap"), std::pair(Setting::kOn, Setting::kOff));
  EXPECT_EQ(mode("mlock"), std::pair(Setting::kUnknown, Setting::kOn));
  EXPECT_EQ(mode("mmap+mlock"), std::pair(Setting::kOn, Setting::kOn));
  EXPECT_EQ(mode("teleport"), std::pair(Setting::kUnknown, Setting::kUnknown));
  EXPECT_EQ(llama({"-lm", "none"}).mmap, Setting::kOff);
  EXPECT_EQ(llama({}, {"LLAMA_ARG_LOAD_MODE=none"}).mmap, Setting::kOff);
}

TEST(ServerConfig, DirectIoMakesAMappingUncertain) {
  EXPECT_EQ(llama({"--direct-io"}).mmap, Setting::kUnknown);
  EXPECT_EQ(llama({"-dio", "--mmap"}).mmap, Setting::kUnknown);
  EXPECT_EQ(llama({"-dio", "--no-mmap"}).mmap, Setting::kOff);
  EXPECT_EQ(llama({"--no-direct-io", "--mmap"}).mmap, Setting::kOn);
  EXPECT_EQ(llama({"--mmap"}, {"LLAMA_ARG_DIO=1"}).mmap, Setting::kUnknown);
  EXPECT_EQ(llama({"-lm", "mmap"}, {"LLAMA_ARG_DIO=1"}).mmap, Setting::kOn);  // no such switch
}

TEST(ServerConfig, TensorsThatStayWithTheCpu) {
  for (const auto& options : {std::initializer_list<std::string_view>{"-ot", "exps=CPU"},
                              {"--override-tensor", "blk\\.1\\.ffn=ROCm0,blk\\.2\\.ffn=CPU"},
                              {"--override-tensor=exps=CPU"},
                              {"-cmoe"},
                              {"--cpu-moe"},
                              {"-ncmoe", "12"},
                              {"--n-cpu-moe", "1"},
                              {"--n-cpu-ffn", "4"},
                              {"--n-cpu-moe", "2", "-ot", "output=ROCm0"}}) {
    EXPECT_EQ(llama(options).cpu_offload, Setting::kOn) << *options.begin();
  }
  EXPECT_EQ(llama({"-ot", "exps=ROCm0"}).cpu_offload, Setting::kOff);
  EXPECT_EQ(llama({"-ot", ",,=,CPU"}).cpu_offload, Setting::kOff);
  EXPECT_EQ(llama({"--n-cpu-moe", "0"}).cpu_offload, Setting::kOff);
  EXPECT_EQ(llama({"--n-cpu-moe", "many"}).cpu_offload, Setting::kUnknown);
  EXPECT_EQ(llama({}, {"LLAMA_ARG_N_CPU_MOE=3", "LLAMA_ARG_CPU_MOE=0"}).cpu_offload, Setting::kOn);
}

TEST(ServerConfig, EnvironmentTellsWhatTheCommandLineDoesNot) {
  const ServerConfig config =
      llama({"--mmap"}, {"LLAMA_ARG_NO_MMAP=1", "LLAMA_ARG_MLOCK=true", "LLAMA_ARG_PORT=8090",
                         "LLAMA_ARG_MODEL=/models/a.gguf", "LLAMA_ARG_CPU_MOE=on"});
  EXPECT_EQ(config.mmap, Setting::kOn);
  EXPECT_EQ(config.mlock, Setting::kOn);
  EXPECT_EQ(config.cpu_offload, Setting::kOn);
  EXPECT_EQ(config.port, 8090);
  EXPECT_EQ(config.model, "a.gguf");
  EXPECT_EQ(llama({}, {"LLAMA_ARG_MMAP=off"}).mmap, Setting::kOff);
}

TEST(ServerConfig, VariablesThatBuildsReadDifferentlyTellNothing) {
  EXPECT_EQ(llama({}, {"LLAMA_ARG_NO_MMAP=0"}).mmap, Setting::kUnknown);
  EXPECT_EQ(llama({}, {"LLAMA_ARG_MMAP=maybe"}).mmap, Setting::kUnknown);
  EXPECT_EQ(llama({}, {"LLAMA_ARG_LOAD_MODE=mmap", "LLAMA_ARG_NO_MMAP=1"}).mmap, Setting::kUnknown);
  EXPECT_EQ(llama({}, {"LLAMA_ARG_LOAD_MODE=none", "LLAMA_ARG_MLOCK=1"}).mlock, Setting::kUnknown);
}

TEST(ServerConfig, RocmVariablesAreReadOfAnyProgram) {
  const ServerConfig config =
      parse_server_config(with_nuls({"python3", "serve.py"}),
                          with_nuls({"HSA_USERPTR_FOR_PAGED_MEM=0", "HSA_XNACK=1"}), "python3");
  EXPECT_EQ(config.userptr_for_paged_mem, Setting::kOff);
  EXPECT_EQ(config.xnack, Setting::kOn);
  EXPECT_EQ(config.mmap, Setting::kUnknown);
  EXPECT_EQ(llama({}, {"HSA_XNACK=yes"}).xnack, Setting::kUnknown);
  EXPECT_EQ(llama({}, {"HSA_XNACK"}).xnack, Setting::kDefault);
}

TEST(ServerConfig, ModelIsTheNameOfItsFile) {
  EXPECT_EQ(llama({"-m", "/models/Qwen3 30B.gguf"}).model, "Qwen3 30B.gguf");
  EXPECT_EQ(llama({"--model=/x/SECRET/../m.gguf"}).model, "m.gguf");
  EXPECT_EQ(llama({"-m", "m.gguf"}).model, "m.gguf");
  EXPECT_EQ(llama({"-m", "/models/\xff\xfe.gguf"}).model, "\xff\xfe.gguf");  // printing cleans it
  for (const std::string_view no_file : {"", "/", "/SECRET/", "..", "/SECRET/..", "."}) {
    EXPECT_EQ(llama({"-m", no_file}).model, "") << no_file;
  }
  EXPECT_EQ(llama({"-m", std::string(256, 'S')}).model, "");
  EXPECT_EQ(llama({"-m"}).model, "");
}

TEST(ServerConfig, RepositoriesAndUrlsAreNoFiles) {
  EXPECT_EQ(llama({"-hf", "org/model-GGUF:Q4_K_M"}).model, "");
  EXPECT_EQ(llama({"--model-url", "https://host/m.gguf?token=SECRET"}).model, "");
  EXPECT_EQ(llama({"-md", "/models/draft.gguf"}).model, "");
}

TEST(ServerConfig, WhatCouldNotBeReadIsUnknown) {
  const std::string cmdline = with_nuls({"llama-server", "--no-mmap", "-m", "/m.gguf"});
  const ServerConfig denied = parse_server_config(cmdline, std::nullopt, "llama-server");
  EXPECT_EQ(denied.mmap, Setting::kOff);  // the command line comes first
  EXPECT_EQ(denied.mlock, Setting::kUnknown);
  EXPECT_EQ(denied.cpu_offload, Setting::kUnknown);
  EXPECT_EQ(denied.xnack, Setting::kUnknown);
  EXPECT_EQ(denied.model, "m.gguf");
  const ServerConfig blocked =
      parse_server_config(std::nullopt, with_nuls({"LLAMA_ARG_MLOCK=1"}), "llama-server");
  EXPECT_EQ(blocked.mlock, Setting::kUnknown);
  EXPECT_EQ(blocked.xnack, Setting::kDefault);
  EXPECT_EQ(parse_server_config(std::nullopt, std::nullopt, "llama-server"), ServerConfig());
}

TEST(ServerConfig, ProgramsAreToldByEitherName) {
  const auto program = [](std::initializer_list<std::string_view> arguments,
                          std::string_view comm) {
    return parse_command_line(with_nuls(arguments), comm).program;
  };
  EXPECT_EQ(program({"/opt/rocm/bin/llama-server-rocm"}, "x"), ServerProgram::kLlamaServer);
  EXPECT_EQ(program({"/lib/ld.so", "x"}, "llama-server"), ServerProgram::kLlamaServer);
  EXPECT_EQ(program({"llama", "serve"}, "llama"), ServerProgram::kLlamaServer);
  EXPECT_EQ(program({"llama", "bench"}, "llama"), ServerProgram::kUnknown);
  EXPECT_EQ(program({"llama-swap"}, "llama-swap"), ServerProgram::kUnknown);
  EXPECT_EQ(program({"/usr/bin/ollama", "runner"}, "ollama"), ServerProgram::kOllamaRunner);
  EXPECT_EQ(program({"/usr/bin/ollama", "serve"}, "ollama"), ServerProgram::kUnknown);
  EXPECT_EQ(program({"python3", "/usr/bin/vllm", "serve"}, "vllm"), ServerProgram::kVllm);
  EXPECT_EQ(program({"sh", "-c", "llama-server --mlock"}, "sh"), ServerProgram::kUnknown);
}

TEST(ServerConfig, OllamaAndVllmHaveDefaultsThatAreNotKnown) {
  const std::string runner = with_nuls({"ollama", "runner", "--model", "/blobs/sha256-0a1b",
                                        "--port", "41234", "--no-mmap", "--cpu-moe"});
  const ServerConfig ollama =
      parse_server_config(runner, with_nuls({"LLAMA_ARG_MLOCK=1"}), "ollama");
  EXPECT_EQ(ollama.mmap, Setting::kOff);
  EXPECT_EQ(ollama.mlock, Setting::kUnknown);
  EXPECT_EQ(ollama.cpu_offload, Setting::kUnknown);
  EXPECT_EQ(ollama.model, "sha256-0a1b");
  EXPECT_EQ(ollama.port, 41234);
  const ServerConfig vllm = parse_server_config(
      with_nuls({"vllm", "serve", "org/model", "--port=8000", "--mlock"}), with_nuls({}), "vllm");
  EXPECT_EQ(vllm.port, 8000);
  EXPECT_EQ(vllm.model, "");
  EXPECT_EQ(vllm.mlock, Setting::kUnknown);
}

TEST(ServerConfig, HostileTextTellsNothing) {
  EXPECT_EQ(parse_command_line("", "llama-server").program, ServerProgram::kUnknown);
  // A title that the process wrote over its arguments.
  EXPECT_EQ(parse_command_line("llama-server: --mlock", "llama-server").program,
            ServerProgram::kUnknown);
  const std::string cut = with_nuls({"llama-server", "--mlock"}) + "--no-mm";
  EXPECT_EQ(parse_command_line(cut, "llama-server").program, ServerProgram::kUnknown);
  EXPECT_EQ(llama({"", "", "--mlock", ""}).mlock, Setting::kOn);
  const std::string nuls(128U << 10U, '\0');
  EXPECT_EQ(parse_command_line(nuls, "llama-server").program, ServerProgram::kLlamaServer);
  EXPECT_FALSE(parse_environment(nuls).mmap);
  const std::string huge(128U << 10U, '=');
  EXPECT_EQ(llama({huge, "-ot", huge}).cpu_offload, Setting::kOff);
  EXPECT_FALSE(parse_environment(with_nuls({huge, "=", "HSA_XNACK"})).xnack);
  EXPECT_FALSE(parse_environment("HSA_XNACK=1").xnack);  // cut
}

}  // namespace
}  // namespace apu
