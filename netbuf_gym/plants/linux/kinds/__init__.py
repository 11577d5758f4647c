"""The agents' part of live worlds, in the worlds' processes: a module a kind of agent, with a class `Kind` (`base.Kind`)."""
