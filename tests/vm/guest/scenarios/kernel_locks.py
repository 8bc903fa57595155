"""What the test module holds up: tools for scenarios about readers that hang in the kernel."""
import subprocess

import guest


def wait_blocked(report, start):
    """Starts a reader, again if it got through, until one is in uninterruptible sleep."""
    readers = [start()]

    def is_blocked():
        if readers[-1].poll() is not None:
            readers.append(start())
        return guest.state_of(readers[-1].pid) == "D"
    report.wait("a reader hangs", is_blocked)
    return readers[-1]


def reader_of(path):
    return lambda: subprocess.Popen(["cat", path], stdout=subprocess.DEVNULL)


def release(report, name, reader):
    report.fact(f"{name}_state", guest.state_of(reader.pid))
    guest.kernel("release")
    report.wait(f"the reader of {name} ends", lambda: reader.poll() is not None)
    report.fact(f"{name}_exit", reader.returncode)


def run(report):
    release(report, "wait", wait_blocked(report, reader_of("/sys/kernel/debug/apu_testmod/wait")))
    victim = subprocess.Popen(["sleep", "infinity"])
    holder = subprocess.Popen(["sh", "-c", f"echo lock {victim.pid} 300000 > {guest.COMMANDS}"])
    release(report, "lock", wait_blocked(report, reader_of(f"/proc/{victim.pid}/maps")))
    report.wait("the lock is free", lambda: holder.poll() is not None)
    report.fact("holder_exit", holder.returncode)
    victim.kill()
    victim.wait()
