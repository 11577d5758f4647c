"""The kernel as a plant."""
