"""Validation of the simulator against reference measurements and the kernel: our measurements, kept for the pages."""
