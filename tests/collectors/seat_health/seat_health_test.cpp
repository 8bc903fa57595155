#include "collectors/seat_health/seat_health.h"

#include <gtest/gtest.h>

#include "collectors/cgroup/cgroup.h"
#include "collectors/seats/seats.h"
#include "collectors/verdict.h"
#include "exporter/text.h"
#include "tests/support/collector_host.h"
#include "tests/support/temp_tree.h"
#include "triage/report.h"

namespace apu {
namespace {

using std::chrono::seconds;

constexpr ProcessKey kServer{41, 4100};  // started 41 s after boot
constexpr ProcessKey kSecond{42, 9000};
constexpr const char* kUrl = "http://127.0.0.1:8080";
constexpr const char* kSecondUrl = "http://[::1]:8081/llama";

/// Servers by URL, and what they were asked.
struct FakeServers {
  std::map<std::string, HttpReply> replies;
  std::vector<std::string> asked;
};

class FakeClient : public HttpClient {
 public:
  explicit FakeClient(FakeServers& servers) : servers_(servers) {}

  std::vector<HttpReply> get(std::span<const HttpRequest> requests,
                             std::chrono::milliseconds /*timeout*/) override {
    std::vector<HttpReply> replies;
    for (const HttpRequest& request : requests) {
      servers_.asked.push_back(request.url);
      const auto found = servers_.replies.find(request.url);
      replies.push_back(found == servers_.replies.end() ? HttpReply{HttpOutcome::kSilent, 0, ""}
                                                        : found->second);
    }
    return replies;
  }

 private:
  FakeServers& servers_;
};

HttpReply answer(long status, std::string body) {
  return {HttpOutcome::kAnswered, status, std::move(body)};
}

HttpReply silence() {
  return {HttpOutcome::kSilent, 0, ""};
}

const char* const kReadyBody = R"({"status":"ok"})";
const char* const kLoadingBody =
    R"({"error":{"code":503,"message":"Loading model","type":"unavailable_error"}})";

std::string slots_body(int task, int decoded) {
  return R"([{"id":0,"is_processing":false},{"id":1,"is_processing":true,"prompt":"secret",)"
         R"("id_task":)" +
         std::to_string(task) + R"(,"next_token":[{"n_decoded":)" + std::to_string(decoded) +
         "}]}]";
}

std::string listener_line(std::string_view address, std::uint64_t inode) {
  return "0: " + std::string(address) + " 00000000:0000 0A 0:0 00:0 0 0 0 " +
         std::to_string(inode) + "\n";
}

class SeatHealth : public testing::Test {
 protected:
  SeatHealth() {
    tree.link("proc/self/ns/net", "net:[1]");
    tree.write("proc/self/net/tcp", "  sl  local_address\n" + listener_line("0100007F:1F90", 700));
    tree.write("proc/self/net/tcp6", listener_line("00000000000000000000000000000000:1F91", 800));
    add_process(kServer, 700);
    index->seats.resize(1);
    index->seats[0].name = "llama";
    index->seats[0].processes = {{kServer, "llama-server", "/llama.service", true}};
    configs.processes[kServer] = config_of({});
    pass_at(0);
  }

  static ServerConfig config_of(const HttpAddress& address) {
    ServerConfig config;
    config.program = ServerProgram::kLlamaServer;
    config.http = address;
    return config;
  }

  void add_process(const ProcessKey& key, std::uint64_t socket) const {
    const std::string directory = "proc/" + std::to_string(key.pid);
    tree.write(directory + "/stat",
               std::to_string(key.pid) +
                   " (llama-server) S 1 1 1 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 4 0 " +
                   std::to_string(key.start_ticks) + " 1000000 100 18446744073709551615\n");
    tree.link(directory + "/ns/net", "net:[1]");
    tree.link(directory + "/fd/0", "/dev/null");
    tree.link(directory + "/fd/3", "socket:[" + std::to_string(socket) + "]");
  }

  void add_second_server() {
    add_process(kSecond, 800);
    index->seats[0].processes.push_back({kSecond, "llama-server", "/llama.service", true});
    HttpAddress address;
    address.port = 8081;
    address.prefix = "/llama";
    configs.processes[kSecond] = config_of(address);
  }

  template <typename Found>
  void put(const char* name, Found found) const {
    host.store->put(name, {std::make_shared<const Snapshot>(Snapshot{std::move(found), {}}),
                           host.clock->now(), std::chrono::steady_clock::now(), seconds(15)});
  }

  /// A pass so many seconds after the first, which was 1000 s after boot.
  void pass_at(int time) {
    constexpr int kFirst = 1000;
    tree.write("proc/uptime", std::to_string(kFirst + time) + ".00 5000.00\n");
    host.clock->set(from_unix_seconds(1.8e9 + time));
    CgroupFacts cgroup;
    cgroup.index = std::make_shared<const SeatIndex>(*index);
    put("cgroup", cgroup);
    put("seat_config", configs);
    servers.asked.clear();
    auto snapshot = collector->collect();
    ASSERT_TRUE(snapshot.ok());
    families = snapshot->families;
    facts = std::any_cast<SeatHealthFacts>(snapshot->facts);
  }

  void say(const std::string& path, HttpReply reply) {
    servers.replies[kUrl + path] = std::move(reply);
  }

  void say_slots(int task, int decoded) {
    say("/health", answer(200, kReadyBody));
    say("/slots", answer(200, slots_body(task, decoded)));
  }

  [[nodiscard]] std::optional<double> value(const std::string& name,
                                            const std::string& more = "") const {
    return value_of(families, "apu_seat_" + name + "{seat=\"llama\"" + more + "}");
  }

  [[nodiscard]] double errors() const { return host.parse_errors("seat_health").value_or(-1); }

  TempTree tree;
  CollectorHost host{tree.path()};
  FakeServers servers;
  std::unique_ptr<Collector> collector = make_seat_health_collector(
      host.context("seat_health"), std::make_unique<FakeClient>(servers));
  std::shared_ptr<SeatIndex> index = std::make_shared<SeatIndex>();
  SeatConfigFacts configs;
  Families families;
  SeatHealthFacts facts;
};

// --- ready

TEST_F(SeatHealth, LoadsThenIsReady) {
  say("/health", answer(503, kLoadingBody));
  pass_at(30);
  EXPECT_EQ(value("ready"), 0);
  EXPECT_FALSE(value("load_duration_seconds"));
  EXPECT_EQ(servers.asked, std::vector<std::string>{std::string(kUrl) + "/health"});
  say_slots(1, 10);
  pass_at(60);
  EXPECT_EQ(value("ready"), 1);
  EXPECT_EQ(value("load_duration_seconds"), 1060 - 41);
  pass_at(90);
  EXPECT_EQ(value("load_duration_seconds"), 1060 - 41);
  EXPECT_EQ(value("slots", ",state=\"idle\""), 1);
  EXPECT_EQ(value("slots", ",state=\"busy\""), 1);
  EXPECT_EQ(errors(), 0);
  EXPECT_EQ(host.source("apu_source_available{source=\"seat_health\"}"), 1);
}

TEST_F(SeatHealth, WhoDoesNotAnswerIsNotReadyAndProvesNothing) {
  for (const HttpOutcome outcome : {HttpOutcome::kSilent, HttpOutcome::kFailed}) {
    say("/health", {outcome, 0, ""});
    pass_at(30);
    EXPECT_EQ(value("ready"), 0);
    EXPECT_FALSE(value("load_duration_seconds"));
    EXPECT_TRUE(facts.evidence.empty());
    EXPECT_EQ(errors(), 0);
  }
  say_slots(1, 1);
  pass_at(60);
  EXPECT_FALSE(value("load_duration_seconds"));  // it may have been slow, and loaded long ago
}

TEST_F(SeatHealth, WhoListensNowhereYetIsNotReadyWithoutBeingAsked) {
  tree.remove("proc/41/fd/3");
  pass_at(30);
  EXPECT_EQ(value("ready"), 0);
  EXPECT_TRUE(servers.asked.empty());
  EXPECT_FALSE(facts.evidence.at(kServer).ready);
}

TEST_F(SeatHealth, AnswersOfNoLlamaServerAreCountedAndLeaveItOpen) {
  double count = 0;
  for (const HttpReply& reply : {answer(200, "secret"), answer(302, ""), answer(404, ""),
                                 answer(401, ""), HttpReply{HttpOutcome::kTooLarge, 200, ""}}) {
    say("/health", reply);
    pass_at(30);
    EXPECT_FALSE(value("ready"));
    EXPECT_TRUE(facts.evidence.empty());
    EXPECT_EQ(errors(), ++count);
  }
}

TEST_F(SeatHealth, EachMetricIsPrinted) {
  say("/health", answer(503, kLoadingBody));
  pass_at(30);
  say_slots(1, 10);
  pass_at(60);
  for (const MetricInfo& info : seat_health_metrics()) {
    EXPECT_TRUE(has_family(families, info.name)) << info.name;
  }
}

// --- who is asked

TEST_F(SeatHealth, OnlyWhoHoldsThePortOfLoopbackIsAsked) {
  const auto asked = [&] {
    pass_at(30);
    return !servers.asked.empty();
  };
  EXPECT_TRUE(asked());
  tree.write("proc/self/net/tcp", listener_line("0501A8C0:1F90", 700));  // 192.168.1.5
  EXPECT_FALSE(asked());
  EXPECT_FALSE(value("ready"));
  tree.write("proc/self/net/tcp",
             listener_line("0100007F:1F90", 701) + listener_line("0100007F:1F91", 700));
  EXPECT_FALSE(asked());  // the port is a stranger's, and it has another one
  EXPECT_FALSE(value("ready"));
  tree.write("proc/self/net/tcp", listener_line("0100007F:1F90", 700));
  EXPECT_TRUE(asked());
  tree.remove("proc/41/ns/net");
  tree.link("proc/41/ns/net", "net:[2]");
  EXPECT_FALSE(asked());
  EXPECT_FALSE(value("ready"));
  EXPECT_EQ(host.source("apu_source_available{source=\"seat_health\"}"), 1);
  tree.remove("proc/41/ns/net");
  EXPECT_FALSE(asked());
  EXPECT_EQ(host.source("apu_source_unavailable_info{source=\"seat_health\","
                        "reason=\"permission_denied\"}"),
            1);
}

TEST_F(SeatHealth, ConfigurationRulesOut) {
  HttpAddress tls;
  tls.tls = true;
  HttpAddress elsewhere;
  elsewhere.host = ListenHost::kElsewhere;
  HttpAddress unix_socket;
  unix_socket.host = ListenHost::kUnixSocket;
  HttpAddress no_port;
  no_port.port.reset();
  HttpAddress no_prefix;
  no_prefix.prefix.reset();
  for (const HttpAddress& address : {tls, elsewhere, unix_socket, no_port, no_prefix}) {
    configs.processes[kServer] = config_of(address);
    pass_at(30);
    EXPECT_TRUE(servers.asked.empty());
    EXPECT_FALSE(value("ready"));
  }
  configs.processes[kServer].http.reset();  // no llama-server, or a file that was not read
  pass_at(30);
  EXPECT_TRUE(servers.asked.empty());
  EXPECT_FALSE(value("ready"));
}

TEST_F(SeatHealth, ProcessThatEndedIsNotAsked) {
  tree.write("proc/41/stat", "41 (other) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 4 0 9999 1 1 1\n");
  pass_at(30);
  EXPECT_TRUE(servers.asked.empty());
  EXPECT_FALSE(value("ready"));
}

TEST(SeatHealthOfARecordedHost, IsNotAsked) {
  const TempTree tree;
  const CollectorHost host(tree.path());
  const auto collector = make_seat_health_collector(host.context("seat_health"));
  EXPECT_FALSE(collector->collect().ok());
  EXPECT_EQ(host.source("apu_source_unavailable_info{source=\"seat_health\","
                        "reason=\"unsupported\"}"),
            1);
}

// --- several servers

TEST_F(SeatHealth, SeveralServersOfASeatAreOne) {
  add_second_server();
  say_slots(1, 10);
  servers.replies[std::string(kSecondUrl) + "/health"] = answer(503, kLoadingBody);
  pass_at(30);
  EXPECT_EQ(value("ready"), 0);
  EXPECT_EQ(value("slots", ",state=\"busy\""), 1);
  servers.replies[std::string(kSecondUrl) + "/health"] = answer(200, kReadyBody);
  servers.replies[std::string(kSecondUrl) + "/slots"] = answer(200, slots_body(1, 70));
  pass_at(60);
  EXPECT_EQ(value("ready"), 1);
  EXPECT_EQ(value("slots", ",state=\"idle\""), 2);
  EXPECT_EQ(value("load_duration_seconds"), 1060 - 90);
  servers.replies[std::string(kSecondUrl) + "/slots"] = answer(200, slots_body(1, 75));
  say_slots(1, 13);
  pass_at(90);
  EXPECT_EQ(value("decoded_tokens_total"), 8);
  servers.replies[std::string(kSecondUrl) + "/slots"] = silence();
  pass_at(120);
  EXPECT_FALSE(value("slots", ",state=\"idle\""));
  EXPECT_EQ(value("decoded_tokens_total"), 8);
  servers.replies[std::string(kSecondUrl) + "/slots"] = answer(400, "a router has no slots");
  pass_at(150);
  EXPECT_EQ(value("slots", ",state=\"idle\""), 1);
}

// --- slots and tokens

TEST_F(SeatHealth, TokensNeverFallWhileTheSeatLives) {
  say_slots(1, 100);
  pass_at(30);
  EXPECT_EQ(value("decoded_tokens_total"), 0);
  say_slots(1, 150);
  pass_at(60);
  EXPECT_EQ(value("decoded_tokens_total"), 50);
  say("/health", silence());
  pass_at(90);
  EXPECT_EQ(value("decoded_tokens_total"), 50);
  index->seats[0].processes.clear();
  pass_at(120);
  EXPECT_EQ(value("decoded_tokens_total"), 50);
  EXPECT_FALSE(value("ready"));
  add_process(kSecond, 700);
  index->seats[0].processes = {{kSecond, "llama-server", "/llama.service", true}};
  configs.processes[kSecond] = config_of({});
  say_slots(1, 5);
  pass_at(150);
  say_slots(1, 8);
  pass_at(180);
  EXPECT_EQ(value("decoded_tokens_total"), 53);
  index->seats.clear();
  pass_at(210);
  EXPECT_TRUE(families.empty());
}

TEST_F(SeatHealth, SlotsThatAreWithheldAreAbsent) {
  say("/health", answer(200, kReadyBody));
  for (const long status : {401L, 404L, 501L, 503L}) {
    say("/slots", answer(status, "secret"));
    pass_at(30);
    EXPECT_EQ(value("ready"), 1);
    EXPECT_FALSE(value("slots", ",state=\"idle\""));
    EXPECT_FALSE(value("decoded_tokens_total"));
    EXPECT_FALSE(facts.evidence.at(kServer).without_token);
  }
  EXPECT_EQ(errors(), 0);
}

TEST_F(SeatHealth, SlotsThatMakeNoSenseAreCountedAndAbsent) {
  say("/health", answer(200, kReadyBody));
  double count = 0;
  for (const HttpReply& reply :
       {answer(200, "[secret"), answer(307, ""), HttpReply{HttpOutcome::kTooLarge, 200, ""}}) {
    say("/slots", reply);
    pass_at(30);
    EXPECT_EQ(value("ready"), 1);
    EXPECT_FALSE(value("slots", ",state=\"idle\""));
    EXPECT_EQ(errors(), ++count);
  }
}

// --- the state that follows

class SeatHealthState : public SeatHealth {
 protected:
  /// What the seat does after a pass; it polls all the time, as servers do.
  SeatStateFacts state_at(int time) {
    pass_at(time);
    SeatProcessFacts process;
    process.key = kServer;
    process.on_gpu = true;
    process.activity.last = ProcessInterval{};
    process.activity.last->length = seconds(5);
    process.activity.last->hottest = {0.99, 0};
    tasks_.seats["llama"] = {process};
    tasks_.time = seconds(time);
    cgroup_.index = index;
    StateInputs inputs;
    inputs.cgroup = &cgroup_;
    inputs.tasks = &tasks_;
    inputs.health = &facts;
    return states_.update(inputs, host.clock->now(), seconds(time)).at("llama");
  }

  void run_and_put(const char* name, std::unique_ptr<Collector> derived) const {
    auto snapshot = derived->collect();
    ASSERT_TRUE(snapshot.ok());
    host.store->put(name, {std::make_shared<const Snapshot>(*std::move(snapshot)),
                           host.clock->now(), std::chrono::steady_clock::now(), seconds(15)});
  }

  CgroupFacts cgroup_;
  SeatTasksFacts tasks_;
  SeatStates states_;
};

TEST_F(SeatHealthState, BusySlotWithoutATokenForTwoMinutesIsStalled) {
  say_slots(1, 10);
  EXPECT_EQ(state_at(30).state, SeatState::kComputing);
  say_slots(1, 20);
  for (int time = 60; time <= 150; time += 30) {
    EXPECT_EQ(state_at(time).state, SeatState::kComputing) << time;
  }
  const SeatStateFacts stalled = state_at(180);
  EXPECT_EQ(stalled.state, SeatState::kStalled);
  ASSERT_EQ(stalled.reasons.size(), 1U);
  EXPECT_EQ(stalled.reasons[0].value, "for 120 s");
  EXPECT_EQ(stalled.reasons[0].source, "/slots");
  say_slots(1, 21);
  state_at(210);
  EXPECT_EQ(state_at(240).state, SeatState::kComputing);
}

TEST_F(SeatHealthState, BusyServerThatNoLongerTellsOfItsSlotsIsStalledAfterFiveMinutes) {
  say_slots(1, 10);
  state_at(30);
  say("/slots", silence());
  for (int time = 60; time < 330; time += 30) {
    EXPECT_EQ(state_at(time).state, SeatState::kComputing) << time;
  }
  EXPECT_EQ(state_at(330).state, SeatState::kStalled);
}

TEST_F(SeatHealthState, StalledSeatIsWhatTriageSaysFirst) {
  say_slots(1, 10);
  for (int time = 30; time <= 150; time += 30) {
    state_at(time);
  }
  put("seat_tasks", tasks_);
  put("seat_health", facts);
  put("cgroup", cgroup_);
  run_and_put("seats", make_seats_collector(host.context("seats")));
  run_and_put("verdict", make_verdict_collector(host.context("verdict")));
  const TriageReport report = make_triage(*host.store, host.clock->now());
  EXPECT_TRUE(report.is_fault());
  const std::string text = to_triage_text(report);
  EXPECT_NE(first_line(text).find("stalled"), std::string_view::npos) << text;
  EXPECT_NE(text.find("slot busy without a token"), std::string::npos) << text;
  EXPECT_NE(to_triage_json(report).find("\"stalled\""), std::string::npos);
}

TEST_F(SeatHealthState, TokensThatMoveAndIdleSlotsAreNoFault) {
  for (int time = 30; time <= 900; time += 30) {
    say_slots(time / 300, time);
    EXPECT_EQ(state_at(time).state, SeatState::kComputing) << time;
  }
  say("/slots", answer(200, R"([{"id":0,"is_processing":false}])"));
  for (int time = 930; time <= 1800; time += 30) {
    EXPECT_EQ(state_at(time).state, SeatState::kComputing) << time;
  }
}

}  // namespace
}  // namespace apu
