"""Fixtures that several test modules use."""

import dataclasses
import fcntl
import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings

from tests.helpers.processors import pin
from tests.helpers.tiny_jobs import TINY

pin()
settings.register_profile("by result", deadline=None)  # how long an example takes says how busy the machine is
settings.load_profile("by result")

HERE = Path(__file__).parent
BY_THE_CLOCK = ("host", "plants", "tools")
"""Folders of tests that move packets in real time, or kill at moments."""
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # the other cores have tests of their own
SHARED = Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture(scope="session", autouse=True)
def logs_of_learners(tmp_path_factory) -> None:
    """stable-baselines3 makes a folder for each learner that learns without a logger: one that pytest removes."""
    os.environ.setdefault("SB3_LOGDIR", str(tmp_path_factory.mktemp("sb3")))


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with recorded traces, beside the checkout."""
    if not (SHARED / "traces").is_dir():
        pytest.skip("../shared is not here")
    return SHARED


@pytest.fixture(scope="session")
def references() -> Path:
    """The folder with reference measurements."""
    return HERE.parent / "studies" / "validation" / "reference"


@pytest.fixture(autouse=True)
def one_torch_thread():
    """One torch thread, whatever the test before set: networks this small gain nothing from more, and would wait for them."""
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)


@pytest.fixture
def tiny(tmp_path):
    """Overrides of a training job of a second, in its own run directory; and that directory."""
    return [*TINY, f"run_dir={tmp_path / 'run'}"], tmp_path / "run"


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """The run directory of a tiny finished run; not to be written to."""
    from netbuf_gym.training.train import train

    run_dir = tmp_path_factory.mktemp("trained") / "run"
    train([*TINY, f"run_dir={run_dir}"])
    return run_dir


@pytest.fixture
def measure(monkeypatch):
    """Changes the measures of a task."""
    from netbuf_gym import tasks

    def change(task, **changes):
        own = tasks.get(task)
        changed = dataclasses.replace(own, measures=dataclasses.replace(own.measures, **changes))
        monkeypatch.setitem(tasks.record._REGISTRY, task, changed)

    return change


@pytest.fixture
def command(capsys):
    """Runs the command line in this process: exit status, standard output, standard error."""
    from netbuf_gym.cli import program

    def run(*argv):
        status = program.main([str(word) for word in argv])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run


@pytest.fixture
def namespace():
    """A network namespace, outside of which the test changes nothing."""
    from tests.helpers import machines
    from tests.helpers.namespaces import Namespace

    machines.needs_live_worlds()
    machines.needs_program("unshare", "nsenter")
    with Namespace() as one:
        yield one


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that go by the clock come last: they mostly wait, and may do so beside each other."""
    items.sort(key=lambda item: item.path.relative_to(HERE).parts[0] in BY_THE_CLOCK)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item):
    """Where several processes run tests, one that goes by the clock waits for the others' and has them wait.

    All hold the room, in common or alone; who wants it alone stands in the door meanwhile, so that nobody overtakes.
    """
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return (yield)
    with (HERE / "helpers" / "busy_machine.py").open() as door, Path(__file__).open() as room:
        fcntl.flock(door, fcntl.LOCK_EX)
        fcntl.flock(room, fcntl.LOCK_EX if item.get_closest_marker("alone") else fcntl.LOCK_SH)
        fcntl.flock(door, fcntl.LOCK_UN)
        try:
            return (yield)
        finally:
            fcntl.flock(room, fcntl.LOCK_UN)  # also where a test's child has the file
