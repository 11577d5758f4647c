"""Entry point of `python -m netbuf_gym`, the same as the command `netbuf-gym`."""

import sys


def main() -> int:
    """Run the command line and return its exit status; an interruption during the imports prints one line and returns 130."""
    try:
        from netbuf_gym.cli.program import main as run
    except KeyboardInterrupt:
        print("netbuf-gym: error: interrupted", file=sys.stderr)
        return 130
    return run()


if __name__ == "__main__":
    sys.exit(main())
