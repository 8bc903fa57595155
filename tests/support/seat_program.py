#!/usr/bin/python3
"""What a process of a seat can do, each under its name: seat_program.py NAME [ARGUMENTS].

It says on its output what it has done, a line each, and ends when its input does.
"""
import mmap
import os
import pathlib
import signal
import sys
import threading
import time

MIB = 1 << 20
LINKED = ("stat", "status", "io", "task", "cmdline")  # of /proc/PID; see live_seats.py


def say(*words):
    print(*words, flush=True)


def until_end_of_input():
    sys.stdin.read()


def end_with_input():
    """For programs that loop: a thread of its own waits."""
    threading.Thread(target=lambda: (until_end_of_input(), os._exit(0)), daemon=True).start()


def spin():
    """A loop in user space."""
    end_with_input()
    while True:
        pass


def calls():
    """A loop of system calls, which fault no memory in and never sleep."""
    end_with_input()
    zeros, buffer = os.open("/dev/zero", os.O_RDONLY), [bytearray(MIB)]
    while True:
        os.readv(zeros, buffer)


def grow(mib):
    """Memory that becomes more by a MiB each 10 ms, and is kept."""
    kept = []
    for _ in range(int(mib)):
        block = mmap.mmap(-1, MIB, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        for page in range(0, MIB, mmap.PAGESIZE):
            block[page] = 1
        kept.append(block)
        time.sleep(0.01)
    say(mib)
    until_end_of_input()


def read_directly(path, offset, size, buffer):
    with open(os.open(path, os.O_RDONLY | os.O_DIRECT), "rb", buffering=0) as file:
        read, end = 0, os.fstat(file.fileno()).st_size
        while read < size:
            read += os.preadv(file.fileno(), [buffer], (offset + read) % end)
    return read


def read(path, mib):
    """That much from storage, past the page cache."""
    say(read_directly(path, 0, int(mib) * MIB, mmap.mmap(-1, MIB)))
    until_end_of_input()


def read_on(path):
    """Small reads from storage, one after the other: it waits for nearly all of the time."""
    end_with_input()
    buffer = mmap.mmap(-1, mmap.PAGESIZE)
    file = os.open(path, os.O_RDONLY | os.O_DIRECT)
    pages = os.fstat(file).st_size // mmap.PAGESIZE
    page = 0
    while True:
        page = (page + 7919) % pages
        os.preadv(file, [buffer], page * mmap.PAGESIZE)


def open_and_read(path):
    with open(path, "rb", buffering=0) as file:
        file.read()


def wait_for_child(fifo):
    """In disk sleep as long as nobody writes to the FIFO: vfork(2) waits for what the child opens."""
    os.posix_spawn("/bin/true", ["true"], {}, file_actions=[(os.POSIX_SPAWN_OPEN, 0, fifo, os.O_RDONLY, 0)])
    say("awake")
    until_end_of_input()


def sleep(threads):
    """Threads that sleep."""
    for _ in range(int(threads)):
        threading.Thread(target=threading.Event().wait, daemon=True).start()
    say(threads)
    until_end_of_input()


def tick():
    """Sleeps a moment, again and again."""
    end_with_input()
    while True:
        time.sleep(0.005)


def burn(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


# --- workers


def host_of(seat):
    """The host's folder, from that of a seat's cgroup."""
    return pathlib.Path(seat).parents[4]


def join_seat(seat, pid):
    """Puts a process into a seat; also called by those that put their children there."""
    seat = pathlib.Path(seat)
    directory = host_of(seat) / "proc" / str(pid)
    directory.mkdir()
    for name in LINKED:
        (directory / name).symlink_to(f"/proc/{pid}/{name}")
    (directory / "cgroup").write_text(f"0::/system.slice/{seat.name}\n")
    with open(seat / "cgroup.procs", "ab", buffering=0) as file:
        file.write(f"{pid}\n".encode())


def child_of(join):
    """Forks; the child is in the seat before this returns in it."""
    pid = os.fork()
    if pid == 0:
        join(os.getpid())
    return pid


def workers(seat):
    """Each line "begin" of its input begins a child, which works a moment, and "end" ends it."""
    children = []
    for line in sys.stdin:
        if line == "begin\n":
            pid = child_of(lambda pid: join_seat(seat, pid))
            if pid == 0:
                burn(0.3)
                signal.pause()
            children.append(pid)
        else:
            os.kill(children[-1], signal.SIGKILL)
            os.waitpid(children.pop(), 0)
        say(line.strip())
    for pid in children:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def churn(seat, count):
    """Children and threads, each with work of its own, that come and go as they like."""
    for number in range(int(count)):
        thread = threading.Thread(target=burn, args=(0.02,))
        thread.start()
        pid = child_of(lambda pid: join_seat(seat, pid))
        if pid == 0:
            burn(0.05)
            os._exit(number % 2)
        os.waitpid(pid, 0)
        thread.join()
    say(count)
    until_end_of_input()


def main():
    name, *arguments = sys.argv[1:]
    programs = (spin, calls, grow, read, read_on, open_and_read, wait_for_child, sleep, tick, workers, churn)
    {program.__name__: program for program in programs}[name](*arguments)


if __name__ == "__main__":
    main()
