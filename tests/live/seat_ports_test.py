#!/usr/bin/python3
"""A real server on the port that another seat's server is told to listen on."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import exporter as apu  # noqa: E402
import seat_health_test  # noqa: E402

HELD = 'apu_seat_port_held_by_other{seat="%s"}'
CHECK = 'apu_seat_check{seat="%s",check="port_free"}'
MORE = tuple(option for name in ("seat_ports", "checks")
             for option in (f"--collector.{name}", f"--collector.{name}.period=300ms"))


class Ports(unittest.TestCase):
    def test_a_port_that_a_stranger_holds_is_told(self):
        with seat_health_test.host() as host:
            host.start("llama-good")
            holder = host.start("llama-holder")
            wronged = host.start("llama-wronged")
            seat_health_test.tell_arguments(host.proc / str(wronged.pid), ["--port", str(holder.listens_on)])
            with apu.Exporter(*host.options(), *MORE) as exporter:
                exporter.wait_sample(CHECK % "llama-wronged", lambda value: value == 0)
                exporter.wait_sample(CHECK % "llama-holder", lambda value: value == 1)
                samples = exporter.samples()
                self.assertEqual([samples[HELD % name] for name in ("llama-good", "llama-holder", "llama-wronged")],
                                 [0, 0, 1])
                holder.kill()
                exporter.wait_sample(HELD % "llama-wronged", lambda value: value == 0)


if __name__ == "__main__":
    unittest.main()
