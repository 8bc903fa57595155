"""The exporter starts anew, after a stop and after a SIGKILL, and reads the whole boot again."""
import guest

COUNTERS = ("apu_workqueue_hog_", "apu_kernel_events_total", "apu_oom_", "apu_unit_")


def counters():
    return {series: value for series, value in guest.samples().items()
            if series.startswith(COUNTERS) and "_total" in series}


def wait_for_another(report, before):
    report.wait("another process serves",
                lambda: guest.show(guest.SERVICE, "MainPID") not in ("0", before) and guest.is_ready())


def run(report):
    pid = guest.show(guest.SERVICE, "MainPID")
    expected = counters()
    report.metrics("before", guest.exposition())
    for name, command in (("restarted", ["systemctl", "restart", guest.SERVICE]),
                          ("killed", ["systemctl", "kill", "--signal=KILL", guest.SERVICE])):
        guest.run(*command)
        wait_for_another(report, pid)
        report.wait("the counters are back", lambda: counters() == expected)
        guest.wait_passes(report)  # they stay
        pid = guest.show(guest.SERVICE, "MainPID")
        report.metrics(name, guest.exposition())
