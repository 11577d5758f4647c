"""What is uploaded and what is installed: metadata, links, contents, and that it runs away from a checkout."""

import gzip
import io
import os
import re
import runpy
import shutil
import subprocess
import sys
import zipfile
from configparser import ConfigParser
from email import message_from_string
from fnmatch import fnmatch
from pathlib import Path
from urllib.parse import unquote

import pytest
import yaml

import netbuf_gym

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.skipif(not (ROOT / "setup.py").is_file(), reason="not in a checkout")


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """The folder that a source distribution unpacks to, with its metadata as a message."""
    egg = tmp_path_factory.mktemp("egg")
    run([sys.executable, "setup.py", "-q", "egg_info", "--egg-base", str(egg)], ROOT)
    (info,) = egg.iterdir()
    unpacked = tmp_path_factory.mktemp("sources")
    for name in (info / "SOURCES.txt").read_text().splitlines():
        if (ROOT / name).is_file() and ".egg-info" not in name:
            (unpacked / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, unpacked / name)
    return unpacked, message_from_string((info / "PKG-INFO").read_text())


@pytest.fixture(scope="module")
def site(sources, tmp_path_factory):
    """The wheel made of it, unpacked, beside the native module of this checkout instead of one built anew."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "-q", ".", "--no-build-isolation", "--no-deps"]
    run([*command, "-C", "cmake.define.NETBUF_PYTHON=OFF", "-w", str(folder)], sources[0])
    (wheel,) = folder.glob("*.whl")
    installed = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as file:
        file.extractall(installed)
    for built in Path(netbuf_gym.__file__).parent.glob("_core*"):
        shutil.copy(built, installed / "netbuf_gym")
    return installed


def run(command, folder, **environment):
    done = subprocess.run(command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_metadata_names_author_addresses_and_that_it_is_typed(sources):
    metadata = sources[1]
    url = ConfigParser()
    url.read(ROOT / "setup.cfg")
    address = url["metadata"]["url"]
    assert metadata["Author"] and metadata["Home-page"] == address
    links = dict(link.split(", ", 1) for link in metadata.get_all("Project-URL"))
    assert set(links) == {"Homepage", "Documentation", "Source", "Changelog", "Issues"}
    assert all(link.startswith(address) for link in links.values())
    assert "Typing :: Typed" in metadata.get_all("Classifier")
    light = [name for name in metadata.get_all("Requires-Dist") if "extra ==" not in name]
    assert sorted(re.split(r"[<>=]", name)[0] for name in light) == ["argcomplete", "gymnasium", "numpy", "pyyaml", "scipy"]
    assert not any(address in (ROOT / name).read_text() for name in ("README.md", "CITATION.cff", "pyproject.toml", "setup.py"))


def test_the_version_is_the_citations_and_the_newest_of_the_changelog(sources):
    version = sources[1]["Version"]
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == version
    assert re.findall(r"^## \[(\d[^\]]*)\] - \d{4}-\d\d-\d\d$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[0] == version


def test_no_link_of_the_long_description_is_relative(sources):
    text = sources[1].get_payload()
    own, shown = (ROOT / "README.md").read_text(), re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    targets = re.findall(r"\]\(\s*([^)\s]+)", shown) + re.findall(r"(?:src|href)=[\"']([^\"']+)", shown)
    targets += re.findall(r"^\[[^\]]+\]:\s*(\S+)", shown, flags=re.MULTILINE)
    assert len(targets) >= 10 and all(re.match(r"https?://|#|mailto:", target) for target in targets)
    relative = [target for target in re.findall(r"\]\(([^)\s]+)", own) if "://" not in target and target[0] != "#"]
    assert len(relative) >= 10, "README.md links relatively, for whoever reads it in a checkout"
    for target in relative:
        assert (ROOT / target.partition("#")[0]).exists(), target


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ("[a](docs/a.md)", "[a]({files}/docs/a.md)"),
        ("[a](./docs/a.md#b) and [c](#c)", "[a]({files}/docs/a.md#b) and [c](#c)"),
        ("![a](docs/a.png)", "![a]({raw}/docs/a.png)"),
        ("[![a](docs/a.png)](docs/a.md)", "[![a]({raw}/docs/a.png)]({files}/docs/a.md)"),
        ("[a](https://x.org/a) <https://x.org>", "[a](https://x.org/a) <https://x.org>"),
        ("[`a`](docs/a.md) and [a `b` c](docs/b.md)", "[`a`]({files}/docs/a.md) and [a `b` c]({files}/docs/b.md)"),
        ("[a][b]\n\n[b]: docs/a.md", "[a][b]\n\n[b]: {files}/docs/a.md"),
        ('<img src="docs/a.png"> <a href="LICENSE">', '<img src="{raw}/docs/a.png"> <a href="{files}/LICENSE">'),
        ("`[a](b)` and\n```\n[a](b)\n```\n", "`[a](b)` and\n```\n[a](b)\n```\n"),
    ],
)
def test_links_become_absolute(given, made):
    links = runpy.run_path(str(ROOT / "website" / "links.py"))
    assert links["link_to_repository"](given) == made.format(files=links["FILES"], raw=links["RAW"])


def test_the_sources_are_whole(sources):
    def made(path):
        return path.suffix in (".so", ".pyc", ".npz") or path.name in ("runs.csv", "_core.pyi")

    for name in ("setup.py", "CMakeLists.txt", "netbuf_gym/py.typed", "cpp/src/world.cc", "conf/train.yaml", "LICENSE"):
        assert (sources[0] / name).is_file(), name
    assert [path for path in sources[0].rglob("*") if made(path)] == []


def test_the_sources_have_all_that_their_pages_show(sources):
    """Pictures, tables and data that a page shows or links to, and other pages."""
    link = re.compile(r"\]\(\s*<?([^\s)>]+)|(?:src|href)=[\"']([^\"']+)")
    code = re.compile(r"^```.*?^```|`[^`\n]+`", re.DOTALL | re.MULTILINE)
    pages = [path for kind in ("md", "html") for path in sources[0].rglob(f"*.{kind}") if "theme" not in path.parts]
    missing = set()
    for page in pages:
        for match in link.finditer(code.sub("", page.read_text(encoding="utf-8"))):
            target = match[1] or match[2]
            if not re.match(r"[a-z]+:|//|#", target) and not (page.parent / unquote(target.partition("#")[0])).exists():
                missing.add(f"{page.relative_to(sources[0])}: {target}")
    assert len(pages) > 80 and missing == set()


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not in a checkout")
def test_the_sources_are_the_repository(sources):
    listed = run(["git", "ls-files", "-z"], ROOT).split("\0")
    left_out = {name for name in listed if (ROOT / name).is_file() and not (sources[0] / name).is_file()}
    assert {name for name in left_out if not name.startswith(".github/")} == {".gitignore"}


@pytest.mark.slow
def test_the_wheel_holds_the_package_and_nothing_else(site):
    for name in ("py.typed", "data/conf/train.yaml", "data/conf/scenario/ppcc/1.yaml", "data/zoo/README.md"):
        assert (site / "netbuf_gym" / name).is_file(), name
    results = sorted((ROOT / "results/suites").rglob("*.*"))
    for path in results:
        assert (site / "netbuf_gym/data/results/suites" / path.relative_to(ROOT / "results/suites")).is_file(), path
    assert len(results) > 300
    agents = {path.relative_to(ROOT / "zoo") for path in (ROOT / "zoo").rglob("*") if path.is_file() and path.suffix != ".pyc"}
    assert agents <= {path.relative_to(site / "netbuf_gym/data/zoo") for path in (site / "netbuf_gym/data/zoo").rglob("*")}
    top = {path.name for path in site.iterdir()}
    assert {name for name in top if not name.endswith(".dist-info")} == {"netbuf_gym"}
    kinds = {path.suffix for path in (site / "netbuf_gym").rglob("*") if path.is_file()}
    assert kinds <= {".py", ".pyi", ".typed", ".so", ".yaml", ".csv", ".json", ".md", ".zip", ".o", ".h", ".gz", ".html"}


FOLDER = re.compile(rb"(?<![\w.~$})*-])/(?:home|root|Users|work|workspace|builds?|mnt|srv)/[\w.-]+")
"""Where a file was made: below a person's or a builder's folder."""


def unpacked(data):
    """What a file holds, members of archives one by one."""
    if zipfile.is_zipfile(io.BytesIO(data)):
        archive = zipfile.ZipFile(io.BytesIO(data))
        return [part for name in archive.namelist() for part in unpacked(archive.read(name))]
    return [gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data]


def places(data):
    """Folders of whoever made a file that it names."""
    own = bytes(ROOT) + b"/"
    return {found for part in unpacked(data) for found in FOLDER.findall(part) + [own] * (own in part)}


@pytest.mark.slow
def test_no_shipped_file_says_where_it_was_made(sources, site):
    """Objects, models and results among them: in archives, too."""
    built = sources[0] / "build"  # where the wheel was made
    shipped = [path for folder in (sources[0], site) for path in folder.rglob("*") if path.is_file()]
    shipped = [path for path in shipped if built not in path.parents and ".egg-info" not in str(path)]
    assert {".o", ".so", ".zip", ".gz"} <= {path.suffix for path in shipped}
    named = {path.name: places(path.read_bytes()) for path in shipped}
    assert {name: found for name, found in named.items() if found} == {}


def test_where_a_file_was_made_is_seen():
    archive, folder = io.BytesIO(), b"/" + b"home/somebody"  # in two, as this file is shipped
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("a", b"text " + folder + b"/a.c")
    assert places(archive.getvalue()) == places(b"\0" + folder + b"/a.c\0") == {folder}
    assert places(gzip.compress(bytes(ROOT / "a.c"))) and not places(b"runs/home/a.c https://x.org/home/a /usr/lib/a.so")


@pytest.mark.slow
def test_the_installed_package_works_from_any_folder(site, tmp_path):
    def command(*words):
        return run([sys.executable, "-m", "netbuf_gym", *words], tmp_path, PYTHONPATH=str(site))

    where = run([sys.executable, "-c", "import netbuf_gym; print(netbuf_gym.__file__)"], tmp_path, PYTHONPATH=str(site))
    assert Path(where.strip()) == site / "netbuf_gym/__init__.py"
    assert "one-way" in command("simulate", "--scenario", "rlbm/default", "--duration", "2")
    small = ["algo.num_envs=2", "algo.kwargs.n_steps=32", "algo.kwargs.batch_size=64", "tensorboard=false", "progress=false"]
    command("train", "env=congestion_window", "algo=ppo", "total_timesteps=128", *small, f"run_dir={tmp_path / 'run'}")
    assert (tmp_path / "run" / "model.zip").is_file()
    agent = site / "netbuf_gym/data/zoo/agents/congestion_window/ppo/model.zip"
    words = ["scenario=ppcc/4", "+scenario.kwargs.duration_s=2", "seeds=2", "baselines=[cubic]", "plots=false"]
    assert "| ppo |" in command("evaluate", f"model={agent}", *words, f"run_dir={tmp_path / 'ev'}")


@pytest.mark.slow
def test_the_installed_package_shows_the_committed_leaderboard(site, tmp_path):
    """From a folder that holds no results."""
    command = [sys.executable, "-m", "netbuf_gym", "leaderboard", "show", "task=queue_threshold"]
    shown = run(command, tmp_path, PYTHONPATH=str(site))
    rows = re.findall(r"^\| \d+ \|.*", shown, re.MULTILINE)
    assert len(rows) == len(list((ROOT / "results/suites/v1-queue_threshold").glob("*.csv")))


def test_hooks_are_of_the_pinned_versions():
    hooks = (ROOT / ".pre-commit-config.yaml").read_text()
    named = set(re.findall(r"[\w-]+==[\d.]+", hooks))
    pinned = set((ROOT / "constraints.txt").read_text().splitlines())
    assert {name for name in named if not name.startswith("clang-format")} <= pinned and len(named) == 3


# ---- what an index gets


def pythons():
    """Those that the classifiers name, as (3, 10)."""
    found = re.findall(r"Programming Language :: Python :: 3\.(\d+)", (ROOT / "setup.cfg").read_text())
    return sorted((3, int(minor)) for minor in found)


def test_wheels_are_made_for_every_python_of_the_metadata():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["cibuildwheel"]
    assert settings["build"] == [f"cp{major}{minor}-manylinux_x86_64" for major, minor in pythons()]
    config = ConfigParser()
    config.read(ROOT / "setup.cfg")
    assert config["options"]["python_requires"] == ">={}.{}".format(*pythons()[0])
    assert pythons() == [(3, minor) for minor in range(pythons()[0][1], pythons()[-1][1] + 1)], "without a gap"


def test_wheels_are_tried_by_tests_that_need_no_extra():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["cibuildwheel"]
    assert settings["test-sources"] == ["tests"] and settings["test-command"][0] == "netbuf-gym --help"
    tests = re.findall(r"tests/\S+\.py", " ".join(settings["test-command"]))
    assert tests
    required = {re.split(r"[<>=]", name)[0] for name in settings["test-requires"]}
    required |= {"numpy", "gymnasium", "scipy", "netbuf_gym", "tests"}
    for test in tests:
        imported = re.findall(r"^\s*(?:from|import) (\w+)", (ROOT / test).read_text(), flags=re.MULTILINE)
        assert set(imported) - required - set(sys.stdlib_module_names) == set(), test


@pytest.mark.skipif(not (ROOT / ".github").is_dir(), reason="not in a checkout")
def test_the_workflow_publishes_what_it_built_and_knows_no_secret():
    text = (ROOT / ".github/workflows/wheels.yml").read_text()
    jobs = yaml.safe_load(text)["jobs"]
    assert "secrets." not in text and jobs["publish"]["permissions"] == {"id-token": "write"}
    made = {step["with"]["name"] for job in jobs.values() for step in job["steps"] if "upload-artifact" in step.get("uses", "")}
    (taken,) = [step["with"] for step in jobs["publish"]["steps"] if "download-artifact" in step.get("uses", "")]
    assert made == {"packages-wheels", "packages-sources"} and all(fnmatch(name, taken["pattern"]) for name in made)
    assert set(jobs["publish"]["needs"]) == jobs.keys() - {"publish"}


@pytest.mark.skipif(not (ROOT / ".github").is_dir(), reason="not in a checkout")
def test_actions_of_others_are_named_by_their_commits():
    lines = [line for path in (ROOT / ".github").rglob("*.yml") for line in path.read_text().splitlines() if "uses:" in line]
    assert len(lines) > 4
    for line in lines:
        assert re.search(r"uses: [\w./-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+$", line), line
