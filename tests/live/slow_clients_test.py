#!/usr/bin/python3
"""Fifty connections that are idle or send a byte a second do not keep a scrape waiting."""
import pathlib
import socket
import statistics
import sys
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import exporter as apu  # noqa: E402

CLIENTS = 50
SCRAPES = 100
LIMIT = 0.050  # seconds, the 99th percentile
ROUNDS = 8     # the machine may be busy with other things: one round within the limit is proof


class SlowClients:
    """Holds connections open: half send nothing, half a byte a second. Closed ones are opened anew."""

    def __init__(self, url):
        host, port = url.removeprefix("http://").split(":")
        self.address = (host, int(port))
        self.stopping = threading.Event()
        self.threads = [threading.Thread(target=self._hold, args=(number % 2 == 0,))
                        for number in range(CLIENTS)]

    def _hold(self, idle):
        while not self.stopping.is_set():
            with socket.create_connection(self.address) as connection:
                connection.settimeout(1)
                self._use(connection, idle)

    def _use(self, connection, idle):
        for byte in b"GET /metrics HTTP/1.1\r\nX-Slow: " + b"x" * 1000:
            if self.stopping.is_set():
                return
            try:
                if not idle:
                    connection.sendall(bytes([byte]))
                if connection.recv(1024) == b"":
                    return  # the exporter has had enough
            except TimeoutError:
                continue
            except OSError:
                return

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        for thread in self.threads:
            thread.join()


def timed_scrape(exporter):
    start = time.monotonic()
    reply = exporter.get()
    assert reply.status == 200, reply.status
    return time.monotonic() - start


def percentile_99(exporter):
    return statistics.quantiles([timed_scrape(exporter) for _ in range(SCRAPES)], n=100)[98]


class ScrapesBesideSlowClients(unittest.TestCase):
    def test_a_scrape_is_answered_in_time(self):
        with apu.Exporter(f"--path.rootfs={apu.FIXTURES / 'strix_halo_healthy'}") as exporter:
            exporter.wait_ready()
            with SlowClients(exporter.url):
                seen = []
                for _ in range(ROUNDS):
                    seen.append(percentile_99(exporter))
                    if seen[-1] < LIMIT:
                        break
            self.assertLess(min(seen), LIMIT, f"99th percentiles of {ROUNDS} rounds: {seen}")


if __name__ == "__main__":
    unittest.main()
