"""Adapters to learning libraries; each needs its own extra."""
