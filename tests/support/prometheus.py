"""Debian's Prometheus as a process, on loopback."""
import json
import pathlib
import signal
import socket
import subprocess
import urllib.parse

import exporter as apu

PROMETHEUS_WAIT = 60  # target discovery alone ticks every 5 s


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Prometheus:
    """A Prometheus with the configuration `text`, in `directory`."""

    def __init__(self, directory, text):
        directory = pathlib.Path(directory)
        config = directory / "prometheus.yml"
        config.write_text(text)
        self.log = (directory / "prometheus.log").open("w+")
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self.process = subprocess.Popen(
            ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={directory / 'data'}",
             f"--web.listen-address=127.0.0.1:{port}"], stdout=self.log, stderr=self.log)

    def wait_ready(self):
        def ready():
            if self.process.poll() is not None:
                self.log.seek(0)
                raise AssertionError("Prometheus ended: " + self.log.read())
            try:
                return apu.http_get(self.url + "/-/ready").status == 200
            except OSError:
                return False
        apu.wait_for(ready, "Prometheus is ready", PROMETHEUS_WAIT)

    def api(self, path, **parameters):
        query = urllib.parse.urlencode(parameters)
        return json.loads(apu.http_get(f"{self.url}/api/v1/{path}?{query}").body)["data"]

    def values(self, query):
        """The result of an instant query: [(labels, value)]."""
        return [(item["metric"], float(item["value"][1]))
                for item in self.api("query", query=query)["result"]]

    def wait_values(self, query):
        return apu.wait_for(lambda: self.values(query), f"Prometheus has {query}", PROMETHEUS_WAIT)

    def __enter__(self):
        self.wait_ready()
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=apu.DEADLINE)
        self.log.close()
