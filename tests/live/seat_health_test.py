#!/usr/bin/python3
"""Servers of a seat that load, serve, hang, trickle, flood and redirect, as real processes on loopback."""
import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import exporter as apu  # noqa: E402

SERVER = pathlib.Path(__file__).resolve().parents[1] / "support/fake_llama_server.py"
FIXTURE = apu.FIXTURES / "strix_halo_healthy"
COLLECTORS = ("cgroup", "kfd", "seat_config", "seat_health", "seat_tasks", "seats")
PERIOD = "--collector.%s.period=300ms"
SECRET = "kept-to-itself"
READY = 'apu_seat_ready{seat="%s"}'
BUSY = 'apu_seat_slots{seat="%s",state="busy"}'
IDLE = 'apu_seat_slots{seat="%s",state="idle"}'
TOKENS = 'apu_seat_decoded_tokens_total{seat="%s"}'
LOAD = 'apu_seat_load_duration_seconds{seat="%s"}'
ERRORS = 'apu_parse_errors_total{source="seat_health"}'
PASSES = 'apu_collector_passes_total{collector="seat_health",outcome="ok"}'


def tell_arguments(process, arguments):
    (process / "cmdline").write_text("".join(each + "\0" for each in ("llama-server", *arguments)))


def peak_memory(pid):
    """Bytes that were resident at most."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmHWM:\s*(\d+) kB", status)[1]) << 10


class Host:
    """This machine, with a KFD that names the servers, and a cgroup of its own for each. Their files in
    /proc are the real ones: links to them."""

    def __init__(self, directory):
        self.directory = directory
        self.proc = directory / "proc"
        self.proc.mkdir()
        for name in ("self", "stat", "uptime", "mounts", "sys", "meminfo"):
            (self.proc / name).symlink_to(f"/proc/{name}")
        (self.proc / "1").mkdir()
        (self.proc / "1/cgroup").write_text("0::/init.scope\n")
        shutil.copytree(FIXTURE / "proc/2", self.proc / "2")  # so that it is no container's
        shutil.copytree(FIXTURE / "sys", directory / "sys", symlinks=True)
        shutil.rmtree(directory / "sys/class/kfd/kfd/proc")
        shutil.rmtree(directory / "sys/fs/cgroup")
        self.kfd = directory / "sys/class/kfd/kfd/proc"
        self.cgroups = directory / "sys/fs/cgroup/system.slice"
        self.kfd.mkdir()
        self.cgroups.mkdir(parents=True)
        (self.cgroups.parent / "cgroup.controllers").write_text("memory\n")
        self.servers = []

    def start(self, seat, *modes, arguments=(), prefix=()):
        """Starts a server, waits until it listens, and makes it a seat that was told `arguments`."""
        server = subprocess.Popen([*prefix, sys.executable, "-B", str(SERVER), *modes],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                  env={"LANG": "C"})  # none at all looks like a process that ends
        self.servers.append(server)
        server.listens_on = int(server.stdout.readline())
        self.add(seat, server, ["--port", str(server.listens_on), *arguments])
        return server

    def add(self, seat, server, arguments):
        process = self.proc / str(server.pid)
        process.mkdir()
        for name in ("stat", "status", "io", "task", "fd", "ns", "environ", "fdinfo"):
            (process / name).symlink_to(f"/proc/{server.pid}/{name}")
        tell_arguments(process, arguments)
        (process / "cgroup").write_text(f"0::/system.slice/{seat}.service\n")
        cgroup = self.cgroups / f"{seat}.service"
        cgroup.mkdir()
        (cgroup / "cgroup.procs").write_text(f"{server.pid}\n")
        (self.kfd / str(server.pid)).mkdir()

    def options(self):
        return ["--collector.disable-defaults", f"--path.procfs={self.proc}",
                f"--path.sysfs={self.directory / 'sys'}",
                f"--path.cgroupfs={self.cgroups.parent}", "--log.level=debug",
                *(f"--collector.{name}" for name in COLLECTORS),
                *(PERIOD % name for name in COLLECTORS)]

    def close(self):
        for server in self.servers:
            server.kill()
            server.communicate()


@contextlib.contextmanager
def host():
    with tempfile.TemporaryDirectory(prefix="apu-test-") as directory:
        made = Host(pathlib.Path(directory))
        try:
            yield made
        finally:
            made.close()


def tell(server, command):
    """Makes the server another one from its next answer on."""
    server.stdin.write(command + "\n")
    server.stdin.flush()
    assert server.stdout.readline().strip() == "done"


class SeatHealth(unittest.TestCase):
    def setUp(self):
        self.host = self.enterContext(host())

    def exporter(self, *more):
        return self.enterContext(apu.Exporter(*self.host.options(), *more))

    def check_no_secret(self, exporter):
        for path in ("/metrics", "/", "/triage", "/triage?format=json"):
            self.assertNotIn(SECRET, exporter.get(path).text)
        exporter.stop()
        self.assertNotIn(SECRET, "".join(exporter.log))

    def test_it_is_off_by_default(self):
        server = self.host.start("llama", "ready")
        options = [each for each in self.host.options() if "seat_health" not in each]
        with apu.Exporter(*options) as exporter:
            exporter.wait_sample('apu_seat_processes{seat="llama"}', lambda value: value == 1)
            self.assertNotIn(READY % "llama", exporter.samples())
        tell(server, "asked")
        self.assertEqual(server.stdout.readline().strip(), "[]")

    def test_a_load_and_tokens(self):
        server = self.host.start("llama", "loading")
        exporter = self.exporter()
        exporter.wait_sample(READY % "llama", lambda value: value == 0)
        self.assertNotIn(LOAD % "llama", exporter.samples())
        tell(server, "ready")
        exporter.wait_sample(READY % "llama", lambda value: value == 1)
        self.assertGreater(exporter.samples()[LOAD % "llama"], 0)
        exporter.wait_sample(IDLE % "llama", lambda value: value == 2)
        tell(server, "decode 100")
        exporter.wait_sample(BUSY % "llama", lambda value: value == 1)
        before = exporter.samples()[TOKENS % "llama"]
        tell(server, "decode 160")
        exporter.wait_sample(TOKENS % "llama", lambda value: value == before + 60)
        passes = exporter.samples()[PASSES]
        exporter.wait_sample(PASSES, lambda value: value >= passes + 2)
        self.assertEqual(exporter.samples()[TOKENS % "llama"], before + 60)
        self.assertEqual(exporter.samples()[ERRORS], 0)
        self.check_no_secret(exporter)
        tell(server, "asked")
        asked = server.stdout.readline()
        self.assertEqual(set(re.findall(r"'(.*?)'", asked)), {"/health", "/slots"})

    def test_one_that_hangs_costs_the_others_nothing(self):
        for seat in [f"hung-{i}" for i in range(6)]:
            self.host.start(seat, "hang")
        self.host.start("trickle", "trickle")
        self.host.start("closes", "close")
        self.host.start("fine", "ready")
        exporter = self.exporter()
        exporter.wait_sample(READY % "fine", lambda value: value == 1)
        samples = exporter.samples()
        for seat in [f"hung-{i}" for i in range(6)] + ["trickle", "closes"]:
            self.assertEqual(samples[READY % seat], 0, seat)
        # All of them take as long as one: two seconds for /health.
        duration = samples['apu_collector_duration_seconds{collector="seat_health"}']
        self.assertLess(duration, 6)
        self.assertEqual(samples['apu_collector_overdue{collector="seat_health"}'], 0)

    def test_slots_that_do_not_answer_leave_it_ready(self):
        self.host.start("llama", "ready", "slots-hang")
        self.host.start("locked", "ready", "slots-401")
        exporter = self.exporter()
        for seat in ("llama", "locked"):
            exporter.wait_sample(READY % seat, lambda value: value == 1)
            self.assertNotIn(IDLE % seat, exporter.samples())

    def test_floods_and_redirects_are_errors(self):
        redirected = self.host.start("elsewhere", "ready")
        for seat, mode in (("flood", "flood"), ("headers", "headers")):
            self.host.start(seat, mode)
        self.host.start("slots", "ready", "slots-flood")
        self.host.start("redirect", f"redirect-{redirected.listens_on}")
        exporter = self.exporter()
        peak = peak_memory(exporter.process.pid)
        exporter.wait_sample(READY % "slots", lambda value: value == 1)
        exporter.wait_sample(ERRORS, lambda value: value >= 4)
        samples = exporter.samples()
        for seat in ("flood", "headers", "redirect"):
            self.assertNotIn(READY % seat, samples)
        self.assertNotIn(IDLE % "slots", samples)
        self.assertLess(peak_memory(exporter.process.pid) - peak, 90 << 20)  # of floods of 100 MB each
        self.check_no_secret(exporter)
        tell(redirected, "asked")  # by the exporter, as a seat, and not by way of the redirect
        self.assertNotIn("/elsewhere", redirected.stdout.readline())

    def test_a_proxy_of_the_environment_is_not_used(self):
        self.host.start("llama", "ready")
        proxy = self.host.start("proxy", "ready")
        proxies = {name: f"http://127.0.0.1:{proxy.listens_on}" for name in ("http_proxy", "all_proxy")}
        done = subprocess.run([apu.BINARY, "--once", *self.host.options()], capture_output=True, text=True,
                              timeout=60, check=False, env={**os.environ, **proxies})
        self.assertEqual(apu.parse_samples(done.stdout)[READY % "llama"], 1)
        tell(proxy, "asked")
        self.assertNotIn("http://", proxy.stdout.readline())

    def test_a_prefix(self):
        self.host.start("llama", "ready", "prefix-/a/b", arguments=("--api-prefix", "/a/b"))
        self.exporter().wait_sample(READY % "llama", lambda value: value == 1)

    def test_who_may_not_be_asked_is_absent_with_a_reason(self):
        self.host.start("socket", "ready", arguments=("--host", "/run/x.sock"))
        self.host.start("tls", "ready", arguments=("--ssl-key-file", "/x/key.pem"))
        self.host.start("away", "ready", arguments=("--host", "192.168.7.7"))
        stranger = self.host.start("stranger", "ready")
        # It was told the port that somebody else has.
        other = self.host.servers[0].listens_on
        tell_arguments(self.host.proc / str(stranger.pid), ["--port", str(other)])
        self.host.start("fine", "ready")
        exporter = self.exporter()
        exporter.wait_sample(READY % "fine", lambda value: value == 1)
        samples = exporter.samples()
        for seat, reason in (("socket", "Unix socket"), ("tls", "TLS"), ("away", "not listen on loopback"),
                             ("stranger", "not on this port")):
            self.assertNotIn(READY % seat, samples)
            line = apu.wait_for(lambda s=seat: [each for each in exporter.log if f"seat={s} " in each],
                                f"the reason for {seat}")
            self.assertEqual(len(line), 1)
            self.assertIn(reason, line[0])
        for server in self.host.servers[:4]:
            tell(server, "asked")
            self.assertEqual(server.stdout.readline().strip(), "[]")

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to make a network namespace")
    def test_another_network_namespace_is_not_asked(self):
        probe = subprocess.run(["unshare", "--net", "true"], capture_output=True, check=False)
        if probe.returncode != 0:
            self.skipTest("no network namespace can be made here")
        self.host.start("apart", "ready", prefix=("unshare", "--net"))
        self.host.start("fine", "ready")
        exporter = self.exporter()
        exporter.wait_sample(READY % "fine", lambda value: value == 1)
        self.assertNotIn(READY % "apart", exporter.samples())
        apu.wait_for(lambda: [each for each in exporter.log if "another network namespace" in each],
                     "the reason")

    def test_a_recorded_host_is_not_asked(self):
        server = self.host.start("llama", "ready")
        done = apu.run_exporter("--once", *self.host.options(), f"--path.rootfs={self.host.directory}")
        samples = apu.parse_samples(done.stdout)
        self.assertNotIn(READY % "llama", samples)
        self.assertEqual(samples['apu_source_unavailable_info{source="seat_health",reason="unsupported"}'], 1)
        tell(server, "asked")
        self.assertEqual(server.stdout.readline().strip(), "[]")


if __name__ == "__main__":
    unittest.main()
