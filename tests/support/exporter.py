"""The exporter as a process, and what tests of it share. Standard library only."""
import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = os.environ.get("APU_EXPORTER") or str(ROOT / "build/release/apu_exporter")
FIXTURES = ROOT / "tests/fixtures"
DEADLINE = 30  # seconds; for conditions that hold at once on an idle machine
CANNOT_RUN = 77  # what CTest counts as skipped


def cannot_run(reason):
    """Ends the test as skipped, saying why."""
    print(f"cannot run here: {reason}", file=sys.stderr)
    sys.exit(CANNOT_RUN)


def need_programs(*names):
    for name in names:
        if shutil.which(name) is None:
            cannot_run(f"{name} is not installed")


def wait_for(condition, what, deadline=DEADLINE):
    """Waits until condition() is true and returns its value."""
    end = time.monotonic() + deadline
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {deadline} s: {what}")
        time.sleep(0.02)


def parse_samples(text):
    """The samples of an exposition: {"name{labels}": value}."""
    samples = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            series, value = line.rsplit(" ", 1)
            samples[series] = float(value)
    return samples


class Reply:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def text(self):
        return self.body.decode()

    @property
    def samples(self):
        return parse_samples(self.text)


def http_get(url, timeout=10, **headers):
    request = urllib.request.Request(url, headers={k.replace("_", "-"): v for k, v in headers.items()})
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            return Reply(answer.status, answer.headers, answer.read())
    except urllib.error.HTTPError as error:
        return Reply(error.code, error.headers, error.read())


def thread_ids(pid):
    return os.listdir(f"/proc/{pid}/task")


class Exporter:
    """A serving exporter on a port of the kernel's choice."""

    def __init__(self, *arguments, stdin=None):
        command = [BINARY, "--web.listen-address=127.0.0.1:0", *map(str, arguments)]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, stdin=stdin, text=True,
                                        errors="replace")
        self.log = []
        self._reader = threading.Thread(target=self._read_log, daemon=True)
        self._reader.start()
        self.url = "http://" + wait_for(self._address, "the exporter listens")

    def _read_log(self):
        for line in self.process.stderr:
            self.log.append(line)

    def _address(self):
        if self.process.poll() is not None:
            raise AssertionError(f"the exporter ended: {''.join(self.log)}")
        found = re.search(r'msg="Listening on" address=(\S+)', "".join(self.log))
        return found and found.group(1)

    def get(self, path="/metrics", **keywords):
        return http_get(self.url + path, **keywords)

    def samples(self, path="/metrics"):
        return self.get(path).samples

    def wait_ready(self):
        wait_for(lambda: self.get("/-/ready").status == 200, "the exporter is ready")

    def wait_sample(self, series, accept, what=None):
        """Waits until the series has a value that accept(value) takes, and returns it."""
        def found():
            value = self.samples().get(series)
            return (value,) if value is not None and accept(value) else None
        return wait_for(found, what or series)[0]

    def stop(self):
        """Sends SIGTERM; returns the exit code and the seconds it took."""
        start = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=DEADLINE)
        self._reader.join(timeout=DEADLINE)
        return code, time.monotonic() - start

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self._reader.join(timeout=DEADLINE)
        self.process.stderr.close()


def run_exporter(*arguments, timeout=60, **keywords):
    """Runs the exporter to its end."""
    return subprocess.run([BINARY, *map(str, arguments)], capture_output=True, text=True,
                          errors="replace", timeout=timeout, check=False, **keywords)


@contextlib.contextmanager
def fixture_copy(name):
    """A copy of a fixture that the test may change."""
    with tempfile.TemporaryDirectory(prefix="apu-test-") as directory:
        host = pathlib.Path(directory) / "host"
        shutil.copytree(FIXTURES / name, host, symlinks=True)
        yield host


def replace_by_fifo(file):
    """Puts a FIFO that nobody writes to in the place of a file, in one step."""
    fifo = file.with_name(file.name + ".fifo")
    os.mkfifo(fifo)
    os.replace(fifo, file)
