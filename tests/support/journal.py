"""Real journal files from text, by systemd-journal-remote. Standard library only."""
import os
import pathlib
import subprocess

REMOTE = "/lib/systemd/systemd-journal-remote"
BOOT = "b" * 32
BOOT_TIME = 1783000000  # of the host whose journal it is, Unix seconds


def entry(message, at, transport="kernel", boot=BOOT, **fields):
    """One entry, `at` seconds after boot. A field of None is left out."""
    micros = round(at * 1e6)
    known = {"_BOOT_ID": boot, "_MACHINE_ID": "c" * 32, "_HOSTNAME": "host", "_TRANSPORT": transport}
    if transport == "kernel":
        known |= {"SYSLOG_IDENTIFIER": "kernel", "SYSLOG_FACILITY": "0", "PRIORITY": "4",
                  "_SOURCE_MONOTONIC_TIMESTAMP": str(micros)}
    known |= fields | {"MESSAGE": message}
    lines = [f"__REALTIME_TIMESTAMP={BOOT_TIME * 1000000 + micros}", f"__MONOTONIC_TIMESTAMP={micros}"]
    lines += [f"{name}={value}" for name, value in known.items() if value is not None]
    return "\n".join(lines) + "\n\n"


def of_manager(message, at, **fields):
    """An entry of PID 1."""
    return entry(message, at, "journal",
                 **{"_PID": "1", "SYSLOG_IDENTIFIER": "systemd", "_SYSTEMD_UNIT": "init.scope"} | fields)


def append(file, *entries):
    """Appends entries to a journal file, which is made if there is none."""
    pathlib.Path(file).parent.mkdir(parents=True, exist_ok=True)
    subprocess.run([REMOTE, "-o", str(file), "-"], input="".join(entries), text=True, check=True,
                   capture_output=True, timeout=60)


def make_host(directory, boot=BOOT):
    """A fixture without a journal yet; returns its root."""
    host = pathlib.Path(directory) / "host"
    (host / "proc/sys/kernel/random").mkdir(parents=True)
    (host / "proc/stat").write_text(f"btime {BOOT_TIME}\n")
    (host / "time").write_text(f"{BOOT_TIME + 100000}\n")
    if boot:
        dashed = "-".join((boot[:8], boot[8:12], boot[12:16], boot[16:20], boot[20:]))
        (host / "proc/sys/kernel/random/boot_id").write_text(dashed + "\n")
    return host


def is_there():
    return os.access(REMOTE, os.X_OK)
