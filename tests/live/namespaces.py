"""Network namespaces for tests: a process holds one, commands are run in it. /var/lib in them is their own."""

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
UNSHARE = ["unshare", "-nm"] if ROOT else ["unshare", "-Urnm"]
HOLDER = """
import ctypes, fcntl, signal, socket, struct
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG: it goes with the tests
assert not libc.mount(b"none", b"/var/lib", b"tmpfs", 0, b""), ctypes.get_errno()
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
    fcntl.ioctl(any_socket, 0x8914, struct.pack("16sH14x", b"lo", 1))  # SIOCSIFFLAGS, IFF_UP
print(1, flush=True)
signal.pause()
"""


class Namespace:
    """A network namespace with its loopback device up, and an empty /var/lib; a context."""

    def __enter__(self):
        self.holder = subprocess.Popen([*UNSHARE, sys.executable, "-S", "-c", HOLDER], stdout=subprocess.PIPE, text=True)
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
        return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def get(self, name):
        return tuple(map(int, self.run("cat", SYSCTLS + name).stdout.split()))

    def set(self, name, *value):
        text = " ".join(map(str, value))
        done = self.run("sh", "-c", f"echo '{text}' > {SYSCTLS}{name}")
        assert done.returncode == 0, done.stderr
