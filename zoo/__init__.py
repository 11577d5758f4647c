"""Training, evaluation and the trained agents. Needs `pip install netbuf-gym[train]`."""
