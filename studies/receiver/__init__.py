"""Receivers: an agent beside every other control and through what breaks paths; measurements of receivers themselves."""
