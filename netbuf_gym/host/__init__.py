"""On the user's own host: its settings changed while it works, and every one of them brought back.

`check` says what the machine can do, `tune` observes and, when told to, sets; `restore` brings back what a run that was killed
left behind. Worlds made of the kernel are `netbuf_gym.plants.linux`.
"""
