#!/usr/bin/python3
"""What servers were told: a file that never answers costs its own process alone, and no secret is printed."""
import os
import pathlib
import re
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import exporter as apu  # noqa: E402

HANGFS = os.environ.get("APU_HANGFS")
FIXTURE = "strix_halo_healthy"
HANGING, OTHER = "3101", "3114"  # llama-a, llama-b
COLLECTORS = ("--collector.disable-defaults", "--collector.cgroup", "--collector.seats",
              "--collector.seat_config", "--collector.cgroup.period=300ms",
              "--collector.seats.period=300ms", "--collector.seat_config.period=300ms")
TIMEOUTS = 'apu_guarded_read_timeouts_total{file="%s"}'
UNREAD = 'apu_seat_config_unread_processes{file="%s"}'
BLOCKED = 'apu_source_unavailable_info{source="process_config",reason="blocked"}'
DENIED = 'apu_source_unavailable_info{source="process_config",reason="permission_denied"}'


def config_of(samples, seat):
    """The labels of a seat's configuration; None if it has no series, or more than one."""
    found = [series for series in samples
             if series.startswith(f'apu_seat_config_info{{seat="{seat}",')]
    if len(found) != 1:
        return None
    return dict(re.findall(r'(\w+)="([^"]*)"', found[0]))


def write_texts(file, *texts):
    file.write_bytes(b"".join(os.fsencode(text) + b"\0" for text in texts))


class Hanging(unittest.TestCase):
    def check_that_it_costs_itself_alone(self, host, exporter):
        exporter.wait_sample(UNREAD % "cmdline", lambda value: value == 1)
        exporter.wait_sample(BLOCKED, lambda value: value == 1)
        samples = apu.wait_for(lambda: (s := exporter.samples()) and config_of(s, "llama-b") and s,
                               "the others are read")
        self.assertEqual(config_of(samples, "llama-b")["mmap"], "false")
        self.assertEqual(config_of(samples, "llama-b")["model"], "gpt-oss-20b-mxfp4.gguf")
        self.assertEqual(set(config_of(samples, "llama-a").values()), {"llama-a", ""})
        self.assertEqual(samples[TIMEOUTS % "cmdline"], 1)
        self.assertEqual(samples[TIMEOUTS % "environ"], 0)  # it is not asked
        # One that becomes another program meanwhile is read again.
        process = host / "proc" / OTHER
        write_texts(process / "cmdline", "llama-server", "--mmap")
        stat = (process / "stat").read_text()
        (process / "stat").write_text(stat.replace("(llama-server)", "(llama-server-2)"))
        apu.wait_for(lambda: (config_of(exporter.samples(), "llama-b") or {}).get("mmap") == "true",
                     "the others are still read")

    def test_a_fifo(self):
        with apu.fixture_copy(FIXTURE) as host:
            apu.replace_by_fifo(host / "proc" / HANGING / "cmdline")
            with apu.Exporter(f"--path.rootfs={host}", *COLLECTORS) as exporter:
                self.check_that_it_costs_itself_alone(host, exporter)
                code, seconds = exporter.stop()
                self.assertEqual(code, 0)
                self.assertLess(seconds, 5)

    @unittest.skipUnless(HANGFS and os.access("/dev/fuse", os.W_OK) and os.geteuid() == 0,
                         "needs hangfs, root and /dev/fuse")
    def test_a_reader_that_not_even_sigkill_ends(self):
        with apu.fixture_copy(FIXTURE) as host:
            mount = host.parent / "mount"
            mount.mkdir()
            (host.parent / "hang").touch()
            daemon = subprocess.Popen([HANGFS, str(host), f"/proc/{HANGING}/cmdline", str(mount)],
                                      start_new_session=True)
            try:
                apu.wait_for((mount / "time").exists, "the mount stands")
                with apu.Exporter(f"--path.rootfs={mount}", *COLLECTORS) as exporter:
                    try:
                        self.check_that_it_costs_itself_alone(host, exporter)
                        exporter.process.send_signal(signal.SIGTERM)
                        self.assertEqual(exporter.process.wait(timeout=apu.DEADLINE), 0)
                    finally:
                        daemon.kill()  # before anything waits for the end of stderr, which the reader has
            finally:
                daemon.kill()
                daemon.wait()
                subprocess.run(["umount", "--lazy", str(mount)], check=False)


SECRET = "kept-to-itself"


class Secrets(unittest.TestCase):
    """Whatever stands in these files, only the keys of the allow-list come out."""

    ARGUMENTS = ("llama-server", f"--model=/x/{SECRET}/../m.gguf", "--api-key", SECRET,
                 f"--api-key={SECRET}", "--ssl-key-file", f"/{SECRET}/key.pem", "--alias", SECRET,
                 "-hf", f"{SECRET}/repo", "--model-url", f"https://h/{SECRET}?t={SECRET}", SECRET,
                 "--port", SECRET, "-ncmoe", SECRET, "-ot", f"{SECRET}={SECRET}", "-lm", SECRET,
                 "--api-prefix", f"/{SECRET}", "--host", SECRET, "--ssl-cert-file", SECRET,
                 f"--{SECRET}", "")
    VARIABLES = (f"HF_TOKEN={SECRET}", f"LLAMA_API_KEY={SECRET}", f"LLAMA_ARG_API_KEY={SECRET}",
                 f"LLAMA_ARG_MMAP={SECRET}", f"LLAMA_ARG_MODEL=/{SECRET}/", f"LLAMA_ARG_PORT={SECRET}",
                 f"LLAMA_ARG_LOAD_MODE={SECRET}", f"HSA_XNACK={SECRET}", f"{SECRET}={SECRET}", SECRET,
                 f"LLAMA_ARG_HOST={SECRET}.sock", f"LLAMA_ARG_API_PREFIX=/{SECRET}",
                 f"HSA_USERPTR_FOR_PAGED_MEM={SECRET}", f"=HSA_XNACK={SECRET}")

    def printed_with(self, host):
        done = apu.run_exporter("--once", "--log.level=debug", f"--path.rootfs={host}")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn(SECRET, done.stdout)
        self.assertNotIn(SECRET, done.stderr)
        return apu.parse_samples(done.stdout)

    def test_none_is_printed(self):
        with apu.fixture_copy(FIXTURE) as host:
            process = host / "proc" / HANGING
            write_texts(process / "cmdline", *self.ARGUMENTS)
            write_texts(process / "environ", *self.VARIABLES)
            config = config_of(self.printed_with(host), "llama-a")
            self.assertEqual(config["model"], "m.gguf")
            self.assertEqual(config["mmap"], "")
            self.assertEqual(config["hsa_xnack"], "")

    def test_none_is_printed_of_files_that_make_no_sense(self):
        with apu.fixture_copy(FIXTURE) as host:
            process = host / "proc" / HANGING
            for text in (SECRET, f"llama-server -m /{SECRET}", f"llama-server\0-m\0/{SECRET}/\0",
                         f"{SECRET}\n\0{SECRET}=\xff\0", "\0" * 70000 + SECRET,
                         f"x={SECRET}\0" * 400000):  # larger than is ever read
                (process / "cmdline").write_text(text, errors="surrogateescape")
                (process / "environ").write_text(text, errors="surrogateescape")
                config = config_of(self.printed_with(host), "llama-a")
                self.assertEqual(config["model"], "")

    def test_none_is_served(self):
        with apu.fixture_copy(FIXTURE) as host:
            process = host / "proc" / HANGING
            write_texts(process / "cmdline", *self.ARGUMENTS)
            apu.replace_by_fifo(process / "environ")
            with apu.Exporter(f"--path.rootfs={host}", "--log.level=debug", *COLLECTORS) as exporter:
                exporter.wait_sample(TIMEOUTS % "environ", lambda value: value == 1)
                for path in ("/metrics", "/"):
                    self.assertNotIn(SECRET, exporter.get(path).text)
                exporter.stop()
                self.assertNotIn(SECRET, "".join(exporter.log))


class RealProcess(unittest.TestCase):
    """A process of this machine, which a fixture's KFD names."""

    def setUp(self):
        copy = apu.fixture_copy(FIXTURE)
        self.host = copy.__enter__()
        self.addCleanup(copy.__exit__, None, None, None)
        self.process = subprocess.Popen(
            ["llama-server", "-c", "import sys; sys.stdin.read()", "-m", "/models/m.gguf", "--mlock"],
            executable=sys.executable, stdin=subprocess.PIPE,
            env={"HSA_XNACK": "1", "LLAMA_ARG_N_CPU_MOE": "4", "HF_TOKEN": SECRET})
        self.addCleanup(self.process.communicate)
        (self.host / "sys/class/kfd/kfd/proc" / str(self.process.pid)).mkdir()

    def configs(self, *prefix):
        command = [*prefix, apu.BINARY, "--once", "--path.procfs=/proc",
                   f"--path.rootfs={self.host}", *COLLECTORS]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        samples = apu.parse_samples(done.stdout)
        found = [series for series in samples if series.startswith("apu_seat_config_info{")
                 and 'model="m.gguf"' in series]
        if not found:
            self.skipTest("no process of this machine is in a cgroup that can be a seat")
        self.assertEqual(len(found), 1)
        return found[0], samples

    def test_it_is_read(self):
        series, _ = self.configs()
        self.assertIn('mlock="true",cpu_offload="true"', series)
        self.assertIn('hsa_userptr_for_paged_mem="default",hsa_xnack="true"', series)

    def test_the_environment_of_others_is_denied(self):
        if os.geteuid() != 0:
            self.skipTest("needs root, to become another user")
        os.chmod(self.host.parent, 0o755)
        series, samples = self.configs("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
        self.assertIn('mlock="true",cpu_offload=""', series)
        self.assertIn('hsa_userptr_for_paged_mem="",hsa_xnack=""', series)
        self.assertEqual(samples[DENIED], 1)


if __name__ == "__main__":
    unittest.main()
