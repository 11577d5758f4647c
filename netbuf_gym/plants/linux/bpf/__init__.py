"""Congestion controls for kernel sockets whose window is set from here (BPF struct_ops), with a loader of our own.

The compiled programs lie here (`*.bpf.o`); their sources are `cpp/bpf`, and `make bpf` compiles them anew.
"""
