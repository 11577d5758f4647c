"""Network namespaces for tests: a process holds one, commands are run in it. /var/lib in them is their own."""

import os
import signal
import subprocess
import sys
from pathlib import Path

ROOT = os.geteuid() == 0
SYSCTLS = "/proc/sys/net/ipv4/"
CHECKOUT = str(Path(__file__).resolve().parents[2])
UNSHARE = ["unshare", "-nm"] if ROOT else ["unshare", "-Urnm"]
HOLDER = """
import ctypes, signal, sys
sys.path.insert(0, sys.argv[1])
from tests.helpers import loopback
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG: it goes with the tests
assert not libc.mount(b"none", b"/var/lib", b"tmpfs", 0, b""), ctypes.get_errno()
loopback.up()
print(1, flush=True)
signal.pause()
"""


class Namespace:
    """A network namespace with its loopback device up, and an empty /var/lib; a context."""

    def __enter__(self):
        command = [*UNSHARE, sys.executable, "-S", "-c", HOLDER, CHECKOUT]
        self.holder = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.holder.stdout.readline() == "1\n"
        self.enter = ["nsenter", "-t", str(self.holder.pid), "-n", "-m", f"--wd={os.getcwd()}"]
        if not ROOT:
            self.enter += ["-U", "--preserve-credentials"]
        return self

    def __exit__(self, *exception):
        self.holder.kill()
        self.holder.wait()
        self.holder.stdout.close()

    def run(self, *argv, timeout=180):
        return subprocess.run([*self.enter, *map(str, argv)], capture_output=True, text=True, timeout=timeout)

    def python(self, code, **kwargs):
        done = self.run(sys.executable, "-c", code, **kwargs)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def live(self, *words, **kwargs):
        return self.run(sys.executable, "-m", "netbuf_gym", "live", *words, **kwargs)

    def start(self, *words):
        argv = [*self.enter, sys.executable, "-u", "-m", "netbuf_gym", "live", *map(str, words)]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(argv, **pipes, text=True, preexec_fn=_heeds_signals)

    def get(self, name):
        return tuple(map(int, self.run("cat", SYSCTLS + name).stdout.split()))

    def set(self, name, *value):
        text = " ".join(map(str, value))
        done = self.run("sh", "-c", f"echo '{text}' > {SYSCTLS}{name}")
        assert done.returncode == 0, done.stderr


def _heeds_signals():
    """What tests that run in the background of a shell, or under nohup, would pass on as ignored."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
