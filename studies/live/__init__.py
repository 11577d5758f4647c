"""The same policies in the simulator and on the kernel: how far the one is from the other."""
