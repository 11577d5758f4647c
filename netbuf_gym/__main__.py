"""`python -m netbuf_gym` is the command `netbuf-gym`."""

import sys


def main() -> int:
    """Runs the command line; an interruption while its modules are read is a line too."""
    try:
        from netbuf_gym.cli.program import main as run
    except KeyboardInterrupt:
        print("netbuf-gym: error: interrupted", file=sys.stderr)
        return 130
    return run()


if __name__ == "__main__":
    sys.exit(main())
