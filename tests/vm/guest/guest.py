"""What the scenarios share: reports to the host, the exporter's service, the kernel's test module.

Runs in the VM on python3-minimal, which has no http and no json.
"""
import os
import socket
import subprocess
import time

DEADLINE = 90  # seconds; an emulated machine on a busy one is slow
SERVICE = "apu-exporter"
PORT = 10151
COMMANDS = "/sys/kernel/debug/apu_testmod/command"


class Report:
    """Lines to the host, see README.md. A scenario reports what is, and the host judges."""

    def __init__(self, path):
        self.is_late = False
        self.device = open(path, "w", buffering=1, encoding="utf-8", errors="replace")

    def line(self, *words):
        print(*words, file=self.device)

    def fact(self, key, value):
        self.line("FACT", key, value)

    def text(self, name, text):
        """Any text; each line is indented, so that none looks like one of the report."""
        self.line("TEXT", name)
        for line in text.splitlines():
            self.line(" " + line)
        self.line("END")

    def metrics(self, name, exposition):
        self.line("METRICS", name)
        for line in exposition.splitlines():
            if not line.startswith("#"):
                self.line(line)
        self.line("END")

    def wait(self, what, condition, pause=0.2):
        """Waits until condition() is true. It goes on without: the host says what was wrong by then."""
        # The run has failed once something was late: the rest shall still be reported in time.
        end = time.monotonic() + (DEADLINE / 6 if self.is_late else DEADLINE)
        while not condition():
            if time.monotonic() > end:
                self.is_late = True
                self.line("LATE", what)
                return False
            time.sleep(pause)
        return True


# --- programs


def run(*command, check=True):
    """The output of a program, both streams."""
    return subprocess.run(command, check=check, text=True, errors="replace",
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout


def journal(*matches):
    """The messages of this boot's journal, one a line."""
    return run("journalctl", "--boot", "--quiet", "--output=cat", *matches, check=False)


def show(unit, name):
    return run("systemctl", "show", "--value", f"--property={name}", unit).strip()


def stat_of(pid):
    """The name and the state of a process."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            stat = file.read()
    except (FileNotFoundError, ProcessLookupError):
        return "", "gone"
    end = stat.rindex(")")
    return stat[stat.index("(") + 1:end], stat[end + 2]


def comm_of(pid):
    return stat_of(pid)[0]


def state_of(pid):
    return stat_of(pid)[1]


# --- the kernel


def kernel(command):
    """A command for the test module, see apu_testmod.c."""
    descriptor = os.open(COMMANDS, os.O_WRONLY)
    try:
        os.write(descriptor, command.encode())
    finally:
        os.close(descriptor)


def kernel_records():
    """All of /dev/kmsg, a record each."""
    records = []
    descriptor = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
    try:
        while True:
            records.append(os.read(descriptor, 8192).decode(errors="replace"))
    except BlockingIOError:
        return records
    finally:
        os.close(descriptor)


# --- the exporter


def http(path, port=PORT):
    """The body, or None while the exporter does not answer."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
            connection.sendall(f"GET {path} HTTP/1.0\r\nHost: guest\r\n\r\n".encode())
            answer = b""
            while chunk := connection.recv(65536):
                answer += chunk
    except OSError:
        return None
    head, _, body = answer.partition(b"\r\n\r\n")
    return body.decode() if b" 200 " in head.partition(b"\r\n")[0] else None


def exposition(port=PORT):
    return http("/metrics", port) or ""


def samples(port=PORT):
    pairs = (line.rsplit(" ", 1) for line in exposition(port).splitlines() if not line.startswith("#"))
    return {series: float(value) for series, value in pairs}


def is_ready():
    return http("/-/ready") is not None


PASSES = 'apu_collector_passes_total{collector="kernel_log",outcome="ok"}'


def wait_passes(report, more=2):
    """Waits until the kernel log was read from start to end after this call."""
    before = samples().get(PASSES, 0)
    report.wait("passes of kernel_log", lambda: samples().get(PASSES, 0) >= before + more)
