"""Stand-in until the folders are there."""

from types import SimpleNamespace

from netbuf_gym.arguments import choice
from netbuf_gym.tasks import TASKS


def get(name):
    choice("task", name, TASKS)
    if name == "congestion_window":
        from netbuf_gym.tasks import cw_contenders as c
        from netbuf_gym.tasks import cw_measures as m
    else:
        from netbuf_gym.tasks import qt_contenders as c
        from netbuf_gym.tasks import qt_measures as m
    return SimpleNamespace(name=name, rules=TASKS[name], contenders=c.CONTENDERS, measures=m.MEASURES)


def names():
    return tuple(TASKS)
