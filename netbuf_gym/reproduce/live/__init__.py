"""The same policies and settings in the simulator and on the kernel: how far the one is from the other."""
