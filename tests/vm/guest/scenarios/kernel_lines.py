"""The fault's lines, by the kernel and by those who imitate it."""
import re
import subprocess
import time

import guest

HOG = ("workqueue: {} [{}] hogged CPU for >10000us {} times, consider switching to WQ_UNBOUND")
RESTORE = "amdgpu_amdkfd_restore_userptr_worker"
SVM_FAILED = "amdgpu: SVM mapping failed, exceeds resident system memory limit"
RESUME_FAILED = f"amdgpu: {RESTORE}: Failed to resume KFD"
MES_FAILED = "amdgpu 0000:c5:00.0: amdgpu: MES failed to respond to msg=REMOVE_QUEUE"
FORGED = [HOG.format(RESTORE, "amdgpu", 131), HOG.format("forged_worker", "amdgpu", 4), SVM_FAILED,
          RESUME_FAILED, MES_FAILED]
# The last line: once it counts, those before it were read.
LAST = 'apu_workqueue_hog_events_total{function="last_line",module="apu_testmod"}'


def forge():
    """What user space can write: the kernel makes it facility 1, journald another transport."""
    for text in FORGED:
        for start in ("", "<3>"):  # the second claims to be of the kernel
            with open("/dev/kmsg", "w", encoding="ascii") as file:
                file.write(start + text)
        guest.run("logger", "--tag=kernel", text)
        guest.run("logger", "--tag=kernel", "--priority=kern.err", text)
        # A service's output whose writer calls itself the kernel.
        subprocess.run(["systemd-cat", "--identifier=kernel"], input=text, text=True, check=True)


def print_genuine():
    for count in (4, 5, 7, 11, 19, 35, 67):
        guest.kernel(f"print 4 {HOG.format(RESTORE, 'amdgpu', count)}")
    for _ in range(3):
        guest.kernel(f"print 6 {SVM_FAILED}")
    guest.kernel(f"print 3 {RESUME_FAILED}")
    for _ in range(2):
        guest.kernel(f"devprint 3 {MES_FAILED}")
    guest.kernel(f"print 4 {HOG.format('last_line', 'apu_testmod', 4)}")


def evidence():
    """The records of these lines as /dev/kmsg has them."""
    ours = re.compile(r"hogged CPU|SVM mapping failed|Failed to resume KFD|MES failed")
    return "".join(record for record in guest.kernel_records() if ours.search(record))


def run(report):
    forge()
    by_syslog = ("_TRANSPORT=syslog", "SYSLOG_IDENTIFIER=kernel")
    report.wait("the journal has what was forged",
                lambda: len(guest.journal(*by_syslog).splitlines()) >= 2 * len(FORGED))
    report.fact("forged_in_journal", len(guest.journal("_TRANSPORT=syslog", "_TRANSPORT=stdout",
                                                       "SYSLOG_IDENTIFIER=kernel").splitlines()))
    report.fact("began", time.time())
    print_genuine()
    report.fact("ended", time.time())
    report.text("kmsg", evidence())
    report.wait("the last line counts", lambda: LAST in guest.samples())
    guest.wait_passes(report)
    report.metrics("counted", guest.exposition())
