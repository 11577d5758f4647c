"""Entry point of `python -m netbuf_gym`, the same as the command `netbuf-gym`.

An interruption prints one line and ends with status 130, whenever it comes: modules that are being imported, or Python as it
ends, would turn a `KeyboardInterrupt` into a trace back.
"""

import os
import signal
import sys


def main() -> int:
    """Run the command line and return its exit status."""
    ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    try:
        if ours:
            signal.signal(signal.SIGINT, leave)
        try:
            from netbuf_gym.cli.program import main as run
            from netbuf_gym.utils import startup

            startup.prepare()
        finally:
            if ours:
                signal.signal(signal.SIGINT, signal.default_int_handler)
        return run()
    except KeyboardInterrupt:
        print("netbuf-gym: error: interrupted", file=sys.stderr)
        return 130
    finally:
        if ours and sys.modules[str(__package__)].STARTED_AS_PROGRAM:
            signal.signal(signal.SIGINT, leave)


def leave(number: int, frame: object) -> None:
    """End the process at once, as a handler of SIGINT while there is nothing to tidy up."""
    os.write(2, b"netbuf-gym: error: interrupted\n")
    os._exit(130)


if __name__ == "__main__":
    sys.exit(main())
