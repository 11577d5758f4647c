"""Comparison of the same policies in the simulator and on the kernel."""
