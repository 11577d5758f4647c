"""The simulator beside the reference measurements and beside the kernel: what ours came to, kept for the pages."""
