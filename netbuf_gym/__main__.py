"""`python -m netbuf_gym` is the command `netbuf-gym`."""

import sys

from netbuf_gym.cli import main

sys.exit(main())
