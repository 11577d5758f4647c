"""docs/extending.md, followed to the letter: its files in a copy of the tree, its scripts and its commands run there.

What the page has built by make is built here of the objects that are in `build/native` already, and the page's own sources.
"""

import doctest
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from studies.pages import blocks

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "extending.md").read_text()
BLOCKS = list(blocks.parse_blocks(PAGE))
FILES = {block.file: block for block in BLOCKS if block.file}
RUN = [block for block in BLOCKS if not block.file and block.language in ("python", "console")]
BUILD = ROOT / "build" / "native"
MADE = ("make native", "make test-cpp")
"""Commands that the fixture `tree` and `test_the_catalogues_tests_hold_for_what_is_added` stand for."""


def cached(name):
    """A variable of the build in `build/native`."""
    found = re.search(rf"^{name}:\w+=(.*)$", (BUILD / "CMakeCache.txt").read_text(), re.M)
    return found[1] if found else ""


def shell(command, cwd=ROOT, **kwargs):
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, **kwargs)
    assert done.returncode == 0, f"{shlex.join(map(str, command))}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def in_tree(command, tree):
    own = {"netbuf-gym": [sys.executable, "-m", "netbuf_gym"], "python": [sys.executable]}
    name, *arguments = shlex.split(command)
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | {"PYTHONPATH": str(tree)}
    return shell([*own.get(name, [name]), *arguments], tree, env=environment)


def contents(tree):
    """The sources of a tree."""
    folders = [tree / name for name in ("cpp", "netbuf_gym")]
    found = [path for folder in folders for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    return {str(path.relative_to(tree)): path.read_bytes() for path in found} | {
        path.name: path.read_bytes() for path in tree.glob("*.py")
    }


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A copy of the package with the page's files in it, and a native module and C++ tests that have them."""
    if not (BUILD / "CMakeCache.txt").is_file():
        pytest.skip("nothing is built in build/native (make test-cpp)")
    tree = tmp_path_factory.mktemp("extending")
    junk = shutil.ignore_patterns("__pycache__", "_core*.so", "agents")
    for name in ("netbuf_gym", "conf", "zoo"):
        shutil.copytree(ROOT / name, tree / name, ignore=junk)
    shutil.copytree(ROOT / "cpp", tree / "cpp")
    before = contents(tree)
    for name, block in FILES.items():
        assert name not in before, f"{name} is there already"
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(block.text)
    assert contents(tree).keys() - before.keys() == FILES.keys()
    build(tree)
    return tree


def built(target):
    """Objects of a target; those of sources that have gone since lie about."""
    folder = BUILD / "CMakeFiles" / f"{target}.dir"
    return [path for path in sorted(folder.rglob("cpp/**/*.o")) if (ROOT / path.relative_to(folder).with_suffix("")).is_file()]


def build(tree):
    bindings = built("_core")
    targets = ["netbuf_plain", "nanobind-static", *(str(path.relative_to(BUILD)) for path in bindings)]
    shell([cached("CMAKE_COMMAND"), "--build", str(BUILD), "--target", *targets])
    compiler = [word for word in (cached("CMAKE_CXX_COMPILER_LAUNCHER"), cached("CMAKE_CXX_COMPILER")) if word]
    flags = "-std=c++20 -fPIC -fvisibility=hidden -fvisibility-inlines-hidden -Wall -Wextra".split()
    places = [word for folder in ("include", "src", "tests") for word in ("-isystem", str(tree / "cpp" / folder))]
    own = [name for name in FILES if name.endswith(".cc") and "/src/" in name]
    tests = [name for name in FILES if name.endswith("_test.cc")]
    tests += [f"cpp/tests/{name}.cc" for name in ("main", "cc_registry_test", "qdisc_registry_test")]
    objects = {name: tree / "objects" / f"{Path(name).stem}.o" for name in (*own, *tests)}
    (tree / "objects").mkdir()

    def compiled(name):
        strict = ["-Werror"] if name in FILES else []
        return shell([*compiler, *flags, *strict, "-O1", *places, "-c", str(tree / name), "-o", str(objects[name])])

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(compiled, objects))
    core = [*built("netbuf_plain"), *(objects[name] for name in own)]
    program = tree / "build/native/cpp/tests/netbuf_tests"
    program.parent.mkdir(parents=True)
    link = [compiler[-1], "-O1", "-pthread"]
    shell([*link, *map(str, core), *(str(objects[name]) for name in tests), "-o", str(program)])
    module = tree / "netbuf_gym" / f"_core{sysconfig.get_config_var('EXT_SUFFIX')}"
    nanobind = next(BUILD.glob("libnanobind-static*.a"))
    # Bindings may have been compiled for link-time optimisation.
    shell([*link, "-shared", "-flto", *map(str, (*bindings, *core, nanobind)), "-o", str(module)])


def of(section):
    return [block for block in RUN if block.section == section]


@pytest.mark.release
@pytest.mark.parametrize("section", list(dict.fromkeys(block.section for block in RUN)))
def test_what_the_page_says_happens(section, tree):
    for block in of(section):
        if block.language == "python":
            (tree / "runs").mkdir(exist_ok=True)
            (tree / "runs" / "script.py").write_text(block.text)
            in_tree("python runs/script.py", tree)
            continue
        for command, expected in block.commands:
            if command in MADE:
                continue
            printed, flags = in_tree(command, tree), doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
            assert doctest.OutputChecker().check_output(expected, printed, flags), f"{command}\n{printed}"


@pytest.mark.release
def test_the_catalogues_tests_hold_for_what_is_added(tree):
    for name in ("cc_registry_test", "qdisc_registry_test"):
        assert ", 0 failed checks" in in_tree(f"build/native/cpp/tests/netbuf_tests {name}", tree)
    added = re.findall(r'\.name = "(\w+)"', "".join(FILES[name].text for name in FILES if name.endswith(".cc")))
    assert len(added) == 3
    catalogues = ("congestion_controls", "queue_disciplines", "receiver_controls")
    names = f"from netbuf_gym import _core; print([r['name'] for of in {catalogues} for r in getattr(_core, of)()])"
    assert all(repr(name) in in_tree(f"python -c {shlex.quote(names)}", tree) for name in added)


@pytest.mark.release
def test_the_tests_of_the_registries_hold_for_what_is_added(tree):
    shutil.copytree(ROOT / "tests", tree / "tests", ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
    chosen = ["tests/scenarios/test_congestion_controls.py", "tests/scenarios/test_disciplines.py"]
    chosen += ["tests/tasks/test_tables.py", "tests/evaluation/test_rollout.py", "tests/envs/test_registration.py"]
    chosen += ["-k", "(scenarios or short_wait) and not documentation"]
    printed = in_tree(shlex.join(["python", "-m", "pytest", "-q", "-p", "no:cacheprovider", *chosen]), tree)
    assert "passed" in printed and "failed" not in printed


def test_every_block_of_the_page_is_followed_but_the_first():
    assert PAGE.count("\n```") == 2 * len(BLOCKS)
    assert [block.text for block in BLOCKS if not block.file and block not in RUN and block.language != "toml"] == [
        "make native .venv/.train\nsource .venv/bin/activate\n"
    ]
    assert [block.section for block in BLOCKS if block.language == "toml"] == ["A task"]  # see test_extensions.py


def test_blocks_are_read_with_their_files_and_commands(capsys, tmp_path):
    page = "## One\n\n`a.py`:\n\n```python\nx = 1\n\ny = 2\n```\n\n```console\n$ ls\na.py\n$ true\n```\n"
    page += "## Two\n```sh\nls\n```\n"
    one, two, three = blocks.parse_blocks(page)
    assert (one.section, one.file, one.language, one.lines) == ("One", "a.py", "python", 2)
    assert two.file == "" and two.commands == [("ls", "a.py\n"), ("true", "")]
    assert three.section == "Two" and three.commands == []
    (tmp_path / "page.md").write_text(page)
    assert blocks.main([str(tmp_path / "page.md")]) == 0
    assert "| One     | 1     | 2     | `a.py` 2 " in capsys.readouterr().out
