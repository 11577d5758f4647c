"""Entry point of `python -m netbuf_gym`, the same as the command `netbuf-gym`."""

import sys

from netbuf_gym.utils.interrupts import ExitOnInterrupt


def main() -> int:
    """Run the command line and return its exit status; an interruption prints one line, whenever it comes, and returns 130."""
    try:
        with ExitOnInterrupt():
            from netbuf_gym.cli.program import main as run
            from netbuf_gym.utils import startup

            startup.prepare()
        return run()
    except KeyboardInterrupt:
        print("netbuf-gym: error: interrupted", file=sys.stderr)
        return 130
    finally:
        ExitOnInterrupt().__enter__()  # for the rest of the process


if __name__ == "__main__":
    sys.exit(main())
