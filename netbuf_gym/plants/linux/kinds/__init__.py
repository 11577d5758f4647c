"""The agents' part of live worlds, in the worlds' processes: a module with a class `Kind` (`base.Kind`) a kind of agent."""
