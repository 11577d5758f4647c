"""Receivers: an agent compared with every other control and on paths that break; measurements of receivers themselves."""
