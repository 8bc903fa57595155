#include "collectors/seats/place.h"

#include <gtest/gtest.h>

namespace apu {
namespace {

constexpr const char* kId = "c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1";
const std::string kShort = "c1c1c1c1c1c1";
constexpr const char* kOuter = "e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5";

struct Expected {
  std::string path;
  std::string name;
  std::string cgroup;
  SeatKind kind;
};

class SeatPlaces : public testing::TestWithParam<Expected> {};

TEST_P(SeatPlaces, AreReadFromThePath) {
  const SeatPlace place = parse_seat_place(GetParam().path);
  EXPECT_EQ(place.name("llama-server"), GetParam().name);
  EXPECT_EQ(place.cgroup, GetParam().cgroup);
  EXPECT_EQ(place.kind, GetParam().kind);
}

const std::string kUser = "/user.slice/user-1000.slice/user@1000.service";

INSTANTIATE_TEST_SUITE_P(
    Forms, SeatPlaces,
    testing::Values(
        Expected{"/system.slice/llama-26b.service", "llama-26b", "/system.slice/llama-26b.service",
                 SeatKind::kSystemUnit},
        Expected{"/llama.slice/llama-a.slice/llama-a.service/worker", "llama-a",
                 "/llama.slice/llama-a.slice/llama-a.service", SeatKind::kSystemUnit},
        Expected{"/system.slice/system-llama.slice/llama@26b.service", "llama@26b",
                 "/system.slice/system-llama.slice/llama@26b.service", SeatKind::kSystemUnit},
        Expected{R"(/system.slice/my\x2dllama.service)", "my-llama",
                 R"(/system.slice/my\x2dllama.service)", SeatKind::kSystemUnit},
        Expected{kUser + "/app.slice/llama.service", "1000/llama",
                 kUser + "/app.slice/llama.service", SeatKind::kUserUnit},
        Expected{"/user.slice/user-1000.slice/session-2.scope", "1000/llama-server",
                 "/user.slice/user-1000.slice/session-2.scope", SeatKind::kLoginSession},
        Expected{std::string("/system.slice/docker-") + kId + ".scope", kShort,
                 std::string("/system.slice/docker-") + kId + ".scope", SeatKind::kContainer},
        Expected{std::string("/system.slice/docker-") + kId + ".scope/init", kShort,
                 std::string("/system.slice/docker-") + kId + ".scope", SeatKind::kContainer},
        Expected{std::string("/docker/") + kId, kShort, std::string("/docker/") + kId,
                 SeatKind::kContainer},
        Expected{std::string("/machine.slice/libpod-") + kId + ".scope/container", kShort,
                 std::string("/machine.slice/libpod-") + kId + ".scope", SeatKind::kContainer},
        Expected{kUser + "/user.slice/libpod-" + kId + ".scope", kShort,
                 kUser + "/user.slice/libpod-" + kId + ".scope", SeatKind::kContainer},
        Expected{std::string("/docker/") + kOuter + "/docker/" + kId, kShort,
                 std::string("/docker/") + kOuter + "/docker/" + kId, SeatKind::kContainer},
        Expected{std::string("/libpod_parent/") + kOuter + "/libpod-" + kId, kShort,
                 std::string("/libpod_parent/") + kOuter + "/libpod-" + kId, SeatKind::kContainer},
        Expected{std::string("/docker/") + kOuter + "/system.slice/llama.service", "e5e5e5e5e5e5",
                 std::string("/docker/") + kOuter, SeatKind::kContainer},
        Expected{"/lxc.payload.ct1", "lxc.payload.ct1", "/lxc.payload.ct1", SeatKind::kOther},
        Expected{"/", "llama-server", "/", SeatKind::kOther}));

TEST(SeatPlace, OfKubernetesKnowsThePodInEachQosClass) {
  const std::string uid = "11111111-2222-3333-4444-555555555555";
  const std::string escaped = "11111111_2222_3333_4444_555555555555";
  for (const std::string& path :
       {"/kubepods.slice/kubepods-pod" + escaped + ".slice/cri-containerd-" + kId + ".scope",
        "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + escaped +
            ".slice/crio-" + kId + ".scope",
        "/kubepods/besteffort/pod" + uid + "/" + kId,
        "/kubepods-burstable-pod" + escaped + ".slice:cri-containerd:" + kId,
        "/system.slice/containerd.service/kubepods-burstable-pod" + escaped +
            ".slice:cri-containerd:" + kId,
        std::string("/docker/") + kOuter + "/kubelet.slice/kubelet-kubepods-pod" + escaped +
            ".slice/cri-containerd-" + kId + ".scope"}) {
    const SeatPlace place = parse_seat_place(path);
    EXPECT_EQ(place.kind, SeatKind::kContainer) << path;
    EXPECT_EQ(place.pod_uid, uid) << path;
    EXPECT_EQ(place.name("x"), kShort) << path;
    EXPECT_EQ(place.container_id, kId) << path;
    EXPECT_EQ(place.unit, "") << path;
    EXPECT_EQ(place.cgroup, path);
  }
}

TEST(SeatPlace, OfAQuadletIsItsUnitAndKnowsTheContainer) {
  const SeatPlace place =
      parse_seat_place(std::string("/system.slice/llama.service/libpod-payload-") + kId);
  EXPECT_EQ(place.kind, SeatKind::kSystemUnit);
  EXPECT_EQ(place.unit, "llama");
  EXPECT_EQ(place.cgroup, "/system.slice/llama.service");
  EXPECT_EQ(place.container_id, kId);
}

TEST(ProcCgroup, UnifiedLineIsThePath) {
  EXPECT_EQ(*parse_proc_cgroup("0::/system.slice/a.service\n"), "/system.slice/a.service");
  EXPECT_EQ(*parse_proc_cgroup("0::/system.slice/a.service (deleted)\n"),
            "/system.slice/a.service");
  EXPECT_EQ(*parse_proc_cgroup("4:memory:/x\n1:name=systemd:/y\n0::/z\n"), "/z");
  EXPECT_EQ(*parse_proc_cgroup("0::/../other.scope\n"), "/../other.scope");
}

TEST(ProcCgroup, OfV1AloneIsUnsupported) {
  EXPECT_EQ(parse_proc_cgroup("4:memory:/x\n").error().kind, ErrorKind::kUnsupported);
  EXPECT_EQ(parse_proc_cgroup("").error().kind, ErrorKind::kUnsupported);
  EXPECT_EQ(parse_proc_cgroup("0::x\n").error().kind, ErrorKind::kMalformed);
}

}  // namespace
}  // namespace apu
