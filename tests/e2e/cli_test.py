#!/usr/bin/python3
"""The command line as its users meet it."""
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import exporter as apu  # noqa: E402

HEALTHY = f"--path.rootfs={apu.FIXTURES / 'strix_halo_healthy'}"


class WrongUse(unittest.TestCase):
    def check_refused(self, named, *arguments):
        with self.subTest(arguments):
            done = apu.run_exporter(*arguments)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
            self.assertIn(named, done.stderr)

    def test_each_wrong_option_is_named_in_one_line(self):
        for named, argument in (("--no.such.option", "--no.such.option"),
                                ("stray", "stray"),
                                ("--collector.nonsense", "--collector.nonsense"),
                                ("[::1]:9", "--web.listen-address=[::1]:9"),
                                ("IPv6", "--web.listen-address=[::]:9"),
                                ("70000", "--web.listen-address=:70000"),
                                ("--web.max-requests", "--web.max-requests=many"),
                                ("--web.telemetry-path", "--web.telemetry-path=metrics"),
                                ("soon", "--collector.swap.period=soon"),
                                ("0s", "--collector.swap.period=0s"),
                                ("--log.level", "--log.level=loud"),
                                ("--log.format", "--log.format=xml"),
                                ("/proc/kmsg", "--kernel-log=/proc/kmsg"),
                                ("/no/such/host", "--path.rootfs=/no/such/host"),
                                ("/no/such/file", "--config.file=/no/such/file")):
            self.check_refused(named, argument)

    def test_a_wrong_configuration_is_named_with_its_line(self):
        for line, text in ((1, "nonsense: 1"), (2, "log.level: info\nlog.level: warn"),
                           (2, "log.level: info\nweb.max-requests: [1, 2]"),
                           (1, "log.level: {a: b}"), (3, "log.level: info\n\n- x\n"),
                           (2, "web.max-requests: 4\nlog.format: xml")):
            with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
                file.write(text)
                file.flush()
                self.check_refused(f"{file.name}:{line}:", f"--config.file={file.name}")

    def test_a_port_in_use_is_one_line_with_the_reason(self):
        with socket.socket() as holder:
            holder.bind(("127.0.0.1", 0))
            holder.listen()
            address = "127.0.0.1:%d" % holder.getsockname()[1]
            done = apu.run_exporter(f"--web.listen-address={address}")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn(address, done.stderr)
        self.assertIn("Address already in use", done.stderr)


class RightUse(unittest.TestCase):
    def test_version_and_help_go_to_stdout(self):
        for option, word in (("--version", "apu_exporter, version 0."), ("--help", "--web.listen-address")):
            done = apu.run_exporter(option)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn(word, done.stdout)

    def test_once_fails_where_nothing_can_be_collected(self):
        with tempfile.TemporaryDirectory() as empty:
            done = apu.run_exporter("--once", f"--path.rootfs={empty}")
        self.assertEqual(done.returncode, 1)
        self.assertIn("Nothing could be collected", done.stderr)
        self.assertIn('apu_collector_success{collector="memory"} 0', done.stdout)

    def test_triage_says_what_is_wrong_and_what_to_do(self):
        thrash = f"--path.rootfs={apu.FIXTURES / 'strix_halo_thrash'}"
        done = apu.run_exporter("triage", thrash)
        self.assertEqual(done.returncode, 1, done.stderr)
        lines = done.stdout.splitlines()
        self.assertTrue(lines[0].startswith("KFD THRASH since 2026-07-0"), lines[0])
        self.assertLessEqual(len(lines), 50)
        self.assertLessEqual(max(map(len, lines)), 80)
        for part in ("1.02/s", "llama-26b", "What to do", "free memory first", "never finish"):
            self.assertIn(part, done.stdout.replace("\n", " "))
        with apu.Exporter(thrash) as exporter:
            apu.wait_for(lambda: exporter.get("/triage").text.startswith(lines[0] + "\n"),
                         "the same answer by the server")
            report = json.loads(exporter.get("/triage?format=json").text)
        self.assertEqual(report["judgement"]["verdict"], "kfd_thrash")

    def test_triage_tells_health_from_not_knowing(self):
        self.assertEqual(apu.run_exporter("triage", HEALTHY).returncode, 0)
        with tempfile.TemporaryDirectory() as empty:
            done = apu.run_exporter("triage", "--format=json", f"--path.rootfs={empty}")
        self.assertEqual(done.returncode, 2)
        self.assertEqual(json.loads(done.stdout)["judgement"]["verdict"], "unknown")
        self.assertEqual(apu.run_exporter("triage", "--format=xml").returncode, 2)

    def test_disable_defaults_leaves_what_is_named(self):
        done = apu.run_exporter("--once", HEALTHY, "--collector.disable-defaults", "--collector.swap")
        shown = {series for series in apu.parse_samples(done.stdout) if "collector_success" in series}
        self.assertEqual(shown, {'apu_collector_success{collector="swap"}'})

    def test_disable_exporter_metrics(self):
        done = apu.run_exporter("--once", HEALTHY, "--web.disable-exporter-metrics")
        self.assertNotIn("process_cpu_seconds_total", done.stdout)
        self.assertIn("apu_memory_size_bytes", done.stdout)

    def test_the_kernel_log_comes_from_stdin(self):
        line = "[   12.000001] amdgpu: SVM mapping failed, exceeds resident system memory limit\n"
        done = apu.run_exporter("--once", "--kernel-log=-", input=line * 3)
        samples = apu.parse_samples(done.stdout)
        self.assertEqual(samples['apu_kernel_events_total{event="svm_mapping_failed",gpu=""}'], 3)

    def test_a_log_that_comes_slowly_from_stdin_counts_whole(self):
        line = "[   12.000001] amdgpu: SVM mapping failed, exceeds resident system memory limit\n"
        script = f'(sleep 0.5; printf "{line}"; sleep 0.5; printf "{line}") | "$0" --once --kernel-log=-'
        done = subprocess.run(["sh", "-c", script, apu.BINARY], capture_output=True, text=True, check=True)
        samples = apu.parse_samples(done.stdout)
        self.assertEqual(samples['apu_kernel_events_total{event="svm_mapping_failed",gpu=""}'], 2)

    def test_once_says_that_its_output_failed(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([apu.BINARY, "--once", HEALTHY], stdout=full, stderr=subprocess.PIPE,
                                  text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("could not be written", done.stderr)

    def test_closed_standard_descriptors_are_no_sockets(self):
        script = '"$0" --web.listen-address=127.0.0.1:0 "$1" <&- >&- 2>&- & echo $!'
        done = subprocess.run(["sh", "-c", script, apu.BINARY, HEALTHY], capture_output=True, text=True,
                              check=True)
        pid = int(done.stdout)
        try:
            links = [pathlib.Path(f"/proc/{pid}/fd/{fd}") for fd in (0, 1, 2)]
            apu.wait_for(lambda: all(os.path.exists(link) for link in links), "the three are open")
            self.assertEqual([os.readlink(link) for link in links], ["/dev/null"] * 3)
        finally:
            os.kill(pid, 15)

    def test_json_log_lines(self):
        import json
        done = apu.run_exporter("--once", "--log.format=json",
                                f"--path.rootfs={apu.FIXTURES / 'no_psi'}")
        for line in done.stderr.splitlines():
            self.assertIn("msg", json.loads(line))
        self.assertTrue(done.stderr)

    def test_a_configuration_file_is_read(self):
        with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
            file.write(f"path.rootfs: {apu.FIXTURES / 'strix_halo_healthy'}\n"
                       "web.telemetry-path: /m\nweb.listen-address: ['127.0.0.1:0']\n"
                       "no-collector.process: true\ncollector.memory.period: 1m\n")
            file.flush()
            with apu.Exporter(f"--config.file={file.name}") as exporter:
                exporter.wait_ready()
                self.assertEqual(exporter.get("/metrics").status, 404)
                page = exporter.get("/m").text
        self.assertIn("apu_memory_size_bytes", page)
        self.assertNotIn("process_cpu_seconds_total", page)

    def test_two_addresses(self):
        with apu.Exporter("--web.listen-address=127.0.0.2:0", HEALTHY) as exporter:
            lines = [line for line in exporter.log if "Listening on" in line]
            apu.wait_for(lambda: len([l for l in exporter.log if "Listening on" in l]) == 2, lines)
            for line in exporter.log:
                if "Listening on" in line:
                    address = line.split("address=")[1].strip()
                    self.assertEqual(apu.http_get(f"http://{address}/-/healthy").status, 200)


class Replay(unittest.TestCase):
    def write_frame(self, frames, number, time, log, swappiness):
        frame = frames / str(number)
        (frame / "proc/sys/vm").mkdir(parents=True)
        (frame / "proc/vmstat").write_text("pswpin 1\npswpout 2\n")
        (frame / "proc/stat").write_text("btime 1000\n")
        (frame / "proc/sys/vm/swappiness").write_text(f"{swappiness}\n")
        (frame / "time").write_text(f"{time}\n")
        (frame / "kernel.log").write_text(log)

    def test_frames_are_one_host_whose_time_goes_on(self):
        hog = ("4,{},{},-;workqueue: svm_range_restore_work [amdgpu] hogged CPU for >10000us"
               " {} times, consider switching to WQ_UNBOUND\n")
        with tempfile.TemporaryDirectory() as directory:
            frames = pathlib.Path(directory)
            self.write_frame(frames, 9, 1100, hog.format(1, 50_000_000, 35), 9)
            self.write_frame(frames, 10, 1200, hog.format(2, 82_000_000, 67), 10)
            self.write_frame(frames, 11, 1300, "", 11)
            done = apu.run_exporter("--once", f"--replay.frames={frames}")
            samples = apu.parse_samples(done.stdout)
        labels = '{function="svm_range_restore_work",module="amdgpu"}'
        self.assertEqual(samples["apu_vm_swappiness"], 11)
        self.assertEqual(samples["apu_workqueue_hog_events_total" + labels], 67)
        self.assertEqual(samples["apu_workqueue_hog_reports_total" + labels], 2)
        # 32 in 32 s between the reports; in the 218 s since, 63 may hide.
        self.assertAlmostEqual(samples["apu_workqueue_hog_events_per_second" + labels], 63 / 218)


if __name__ == "__main__":
    unittest.main()
