"""The live plant: kernel TCP in real time, on this machine."""
