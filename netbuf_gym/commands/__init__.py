"""The subcommands of `netbuf-gym`, one module each: `add` describes the arguments, `run` does the work."""
