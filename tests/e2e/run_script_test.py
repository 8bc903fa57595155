#!/usr/bin/python3
"""deploy/run.sh, from another directory and twice in a row: it builds, serves this host, and ends on SIGTERM."""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import exporter as apu  # noqa: E402

BUILD_DEADLINE = 800  # seconds; the first run builds all
ARGUMENTS = ["--web.listen-address=127.0.0.1:0"]


class RunScript(unittest.TestCase):
    def test_it_serves_this_host_and_passes_arguments_on(self):
        for _ in range(2):
            with tempfile.TemporaryDirectory() as elsewhere:
                self.run_once(elsewhere)

    def run_once(self, directory):
        script = subprocess.Popen([apu.ROOT / "deploy/run.sh", *ARGUMENTS], cwd=directory,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        lines = []
        reader = threading.Thread(target=lambda: lines.extend(script.stderr), daemon=True)
        reader.start()
        try:
            address = apu.wait_for(lambda: self.address(script, lines), "it serves", BUILD_DEADLINE)
            samples = apu.wait_for(lambda: self.memory(address), "it has read this host")
            self.assertGreater(samples["apu_memory_size_bytes"], 0)
            self.assertTrue(any("try:" in line for line in lines), "it says what to try")
            # The script has become the exporter: there is no shell between.
            script.send_signal(signal.SIGTERM)
            self.assertEqual(script.wait(timeout=apu.DEADLINE), 0)
        finally:
            script.kill()
            script.wait()
            reader.join(timeout=apu.DEADLINE)
            script.stderr.close()

    def address(self, script, lines):
        self.assertIsNone(script.poll(), "".join(lines))
        found = [line for line in lines if 'msg="Listening on"' in line]
        return found[0].split("address=")[1].strip() if found else None

    def memory(self, address):
        samples = apu.http_get(f"http://{address}/metrics").samples
        return samples if "apu_memory_size_bytes" in samples else None

    def test_what_it_prints_of_itself_stays_out_of_a_pipe(self):
        done = subprocess.run([apu.ROOT / "deploy/run.sh", "--version"], capture_output=True, text=True,
                              timeout=BUILD_DEADLINE, check=True, env=dict(os.environ))
        self.assertTrue(done.stdout.startswith("apu_exporter, version"), done.stdout)
        self.assertEqual(len(done.stdout.splitlines()), 1)


if __name__ == "__main__":
    unittest.main()
