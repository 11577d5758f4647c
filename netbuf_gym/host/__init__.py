"""Tuning of the user's own host: settings are changed while the host works, and every change is undone.

`netbuf-gym live check` says what the machine can do, `live tune` observes and, when told to, sets; `live restore` restores what
a run that was killed left behind. Worlds made of the kernel are `netbuf_gym.plants.linux`.
"""
