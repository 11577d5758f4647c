"""Network namespaces for tests: a process holds one, commands are run in it."""

import os
import shutil
import subprocess
import sys

SYSCTLS = "/proc/sys/net/ipv4/"


def why_not() -> str:
    """Why there are none here; "" where there are."""
    if not (shutil.which("unshare") and shutil.which("nsenter")):
        return "no unshare or nsenter (util-linux)"
    done = subprocess.run([*UNSHARE, "true"], capture_output=True, text=True)
    return "" if done.returncode == 0 else f"no network namespaces: {done.stderr.strip()}"


ROOT = os.geteuid() == 0
UNSHARE = ["unshare", "-n"] if ROOT else ["unshare", "-Urn"]


class Namespace:
    """A network namespace with its loopback device up; a context."""

    def __enter__(self):
        script = "echo 1; exec sleep 1000"
        self.holder = subprocess.Popen([*UNSHARE, "sh", "-c", script], stdout=subprocess.PIPE, text=True)
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
