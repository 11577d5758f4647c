"""A tuner that decides twenty times a second: `python fast_tuner.py [JOURNAL]`; for tests, in a namespace of its own."""

import sys

from netbuf_gym.host import session
from netbuf_gym.host.rate_limits import ChangeRateLimit
from netbuf_gym.host.settings import Sysctl
from netbuf_gym.host.targets import HostSettings
from netbuf_gym.host.tuner import Tuner, catch_end_signals
from netbuf_gym.plants.linux.host_meter import HostMeter

NAMES = ("net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem", "net.ipv4.tcp_limit_output_bytes", "net.ipv4.tcp_notsent_lowat")


class Restless:
    """Something else each time."""

    name = "restless"

    def __init__(self):
        self.count = 0

    def decide(self, telemetry):
        self.count += 1
        size = 100_000 + 1000 * self.count
        names = ("tcp_rmem_max_bytes", "tcp_wmem_max_bytes", "limit_output_bytes", "notsent_lowat_bytes")
        return {**dict.fromkeys(names, size), "tcp_rmem_default_bytes": 70_000 + self.count}


def main(journal=None):
    with catch_end_signals() as ended, session.open_journal(session.resolve_journal_path(journal), print) as book:
        host = HostSettings([Sysctl(name) for name in NAMES])
        tuner = Tuner(host, Restless(), HostMeter(), book, ChangeRateLimit(1000.0, 0.0), interval_s=0.05)
        tuner.run(lambda step: print(len(step.changes), *step.notes, flush=True), ended)


if __name__ == "__main__":
    main(*sys.argv[1:])
