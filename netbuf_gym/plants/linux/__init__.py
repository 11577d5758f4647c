"""The live plant: worlds of the kernel's TCP over links in real time, each in network namespaces of its own.

A world's process imports single modules of this package (`boot.py`), which is why nothing is imported here: numpy and
Gymnasium would take longer than making the world.
"""
