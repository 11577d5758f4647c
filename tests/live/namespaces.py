"""Network namespaces for tests: a process holds one, commands are run in it."""

import subprocess
import sys

import loopback
from machines import ROOT

SYSCTLS = "/proc/sys/net/ipv4/"
UNSHARE = ["unshare", "-n"] if ROOT else ["unshare", "-Urn"]


class Namespace:
    """A network namespace with its loopback device up; a context."""

    def __enter__(self):
        self.holder = subprocess.Popen([*UNSHARE, sys.executable, loopback.__file__], stdout=subprocess.PIPE, text=True)
        assert self.holder.stdout.readline() == "1\n"
        self.enter = ["nsenter", "-t", str(self.holder.pid), "-n"]
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
        return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def get(self, name):
        return tuple(map(int, self.run("cat", SYSCTLS + name).stdout.split()))

    def set(self, name, *value):
        text = " ".join(map(str, value))
        done = self.run("sh", "-c", f"echo '{text}' > {SYSCTLS}{name}")
        assert done.returncode == 0, done.stderr
