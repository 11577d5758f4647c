"""Hydra configuration files; see `netbuf_gym.zoo.config`."""
