"""The layers of the package: imports one way, no circle.

Imports count wherever they stand: at the top of a module, in a function, and for type checking only (a circle of types is
one too).
"""

import ast
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

LAYERS = (
    ("errors", "version"),
    ("utils",),
    ("traces",),
    ("scenarios",),
    ("plants",),
    ("simulation",),
    ("controllers",),  # the protocol; tasks bring their own
    ("rewards",),
    ("tasks",),
    ("envs", "wrappers"),
    ("evaluation",),
    ("integrations", "validation"),
    ("training", "zoo", "leaderboard"),
    ("host",),  # plays trained agents too
    ("cli",),
    ("__main__",),
)
"""Lowest first. A module imports its own layer and lower ones. The package's own page (`netbuf_gym/__init__.py`) offers what
users need and is imported by none of them."""

LEARNERS = ("torch", "hydra", "omegaconf", "optuna", "wandb", "stable_baselines3", "sb3_contrib", "tensorboard", "matplotlib")
"""Libraries that are only there with the extras; no layer below training imports them at import."""
CORE = "netbuf_gym._core"  # built, and below everything
STUDIES = "studies"  # of a checkout: nothing that is installed imports them
APART = tuple(f"netbuf_gym.{name}." for name in ("integrations", "training", "zoo", "leaderboard"))
"""Packages for those who have a learner."""


def modules():
    """Return the paths of all modules by name."""
    paths = (ROOT / "netbuf_gym").rglob("*.py")
    return {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in paths}


def imports(name, path, known):
    """Yield the modules of ours that a module imports, with the lines: of `from package import name` the name, if a module."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            wanted = [one.name for one in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package.split(".")[: len(package.split(".")) - node.level + 1]) if node.level else ""
            source = ".".join(part for part in (base, node.module) if part)
            full = {f"{source}.{one.name}" for one in node.names} - {CORE}
            wanted = [one if one in known else source for one in full]
        else:
            continue
        for one in wanted:
            if one.partition(".")[0] == STUDIES:
                yield STUDIES, node.lineno
            elif one in known and one != name:
                yield one, node.lineno


@pytest.mark.slow
def test_imports_point_one_way_and_in_no_circle():
    level = {f"netbuf_gym.{name}": number for number, layer in enumerate(LAYERS) for name in layer}

    def package_of(name):
        return ".".join(name.split(".")[:2])

    known = modules()
    unplaced = {package_of(name) for name in known} - level.keys() - {"netbuf_gym"}
    assert unplaced == set(), "say in LAYERS where they belong"
    graph = {name: dict(imports(name, path, known)) for name, path in known.items()}
    wrong = [
        f"{known[name].relative_to(ROOT)}:{line} imports {other}"
        for name, found in graph.items()
        for other, line in found.items()
        if other == STUDIES
        or (name != "netbuf_gym" and (other == "netbuf_gym" or level[package_of(other)] > level[package_of(name)]))
    ]
    assert wrong == []
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the modules


@pytest.mark.slow
def test_nothing_below_training_imports_a_learner():
    optional = ("pettingzoo", "matplotlib", *LEARNERS)
    code = (
        "import pkgutil, sys, importlib, netbuf_gym\n"
        "for one in pkgutil.walk_packages(netbuf_gym.__path__, 'netbuf_gym.'):\n"
        f"    if not one.name.startswith({APART!r}) and not one.name.endswith('__main__'):\n"
        "        try:\n"
        "            importlib.import_module(one.name)\n"
        "        except ImportError as error:\n"
        f"            if (error.name or '').partition('.')[0] not in {optional!r}: raise\n"
        f"print(*sorted({{name.partition('.')[0] for name in sys.modules}} & set({LEARNERS!r})))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []
