"""The documentation's site: it builds without a warning, its links lead somewhere, and it asks no other host for anything."""

import os
import re
import runpy
import subprocess
import sys
from collections import defaultdict
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import netbuf_gym

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not (ROOT / "website").is_dir(), reason="not in a checkout")

LOADED = {("link", "href"), ("base", "href")}
"""What a page asks for when it is opened; of other elements all but `href`."""


class Page(HTMLParser):
    """What a page of HTML names: its parts, the links of its readers, and what is loaded with it."""

    def __init__(self, text):
        super().__init__()
        self.parts, self.links, self.loaded, self.components, self.styles = {""}, set(), set(), set(), []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("id", "name") and value:
                self.parts.add(value)
            elif name == "data-md-component":
                self.components.add(value)
            elif name == "style" and value:
                self.styles.append(value)
            elif name in ("href", "src", "poster", "data", "action"):
                (self.loaded if name not in ("href", "action") or (tag, name) in LOADED else self.links).add(value or "")
            elif name == "srcset":
                self.loaded.update(one.split()[0] for one in (value or "").split(",") if one.strip())

    def handle_data(self, data):
        if self.lasttag == "style":
            self.styles.append(data)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, as `make docs` builds it, in another folder."""
    folder = tmp_path_factory.mktemp("site")
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and "WARNING" not in done.stderr, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site):
    return {path: Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}


def outside(target):
    """Whether it is at another host."""
    return bool(urlsplit(target).netloc)


@pytest.mark.release
def test_every_link_and_picture_is_there(site, pages):
    broken = defaultdict(list)
    for path, page in pages.items():
        for target in page.links | page.loaded:
            url = urlsplit(target)
            if url.scheme or url.netloc:
                continue
            there = site / url.path.lstrip("/") if url.path.startswith("/") else path.parent / unquote(url.path)
            there = Path(os.path.normpath(path if not url.path else there))
            if there.is_dir():
                there /= "index.html"
            if not there.is_file() or (there in pages and unquote(url.fragment) not in pages[there].parts):
                broken[str(path.relative_to(site))].append(target)
    assert len(pages) > 60 and not broken


@pytest.mark.release
def test_no_page_asks_another_host(site, pages):
    for path, page in pages.items():
        assert not [target for target in page.loaded if outside(target)], path
        assert not re.search(r"(url\(|@import)\s*[\"']?(https?:)?//", " ".join(page.styles)), path
        assert "source" not in page.components, f"{path}: the theme's script would ask the repository's host for figures"
        assert "mermaid" not in path.read_text(encoding="utf-8").lower(), f"{path}: the theme's script would fetch mermaid"
    for path in site.rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*[\"']?(https?:)?//", path.read_text(encoding="utf-8")), path
    assert not list(site.rglob("*.woff*"))


@pytest.mark.release
def test_links_of_the_repository_lead_to_its_files(pages):
    links = runpy.run_path(str(ROOT / "website" / "links.py"))
    theirs = [target for page in pages.values() for target in page.links if target.startswith(links["URL"] + "/")]
    assert len(theirs) > 30
    for target in theirs:
        path = target.removeprefix(links["URL"] + "/").removeprefix("blob/HEAD/").removeprefix("raw/HEAD/")
        assert (ROOT / unquote(urlsplit(path).path)).exists(), target


SOURCES = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "zoo/README.md", "results/README.md", "docs"]


def markdown():
    for name in SOURCES:
        yield from sorted((ROOT / name).rglob("*.md")) if (ROOT / name).is_dir() else [ROOT / name]


def test_links_of_the_sources_lead_to_files():
    replace_links = runpy.run_path(str(ROOT / "website" / "links.py"))["replace_links"]
    followed = []
    for path in markdown():

        def follow(target, image, path=path):
            followed.append(target)
            assert (path.parent / target.partition("#")[0]).exists(), f"{path.relative_to(ROOT)}: {target}"
            return target

        replace_links(path.read_text(encoding="utf-8"), follow)
    assert len(followed) > 200


@pytest.mark.release
def test_the_reference_has_all_public_modules_and_what_is_made_on_import(site):
    said = "\n".join(path.read_text() for path in (ROOT / "docs/reference").glob("*.md"))
    modules = {name for name in netbuf_gym.__all__ if hasattr(getattr(netbuf_gym, name), "__path__")}
    missing = {name for name in modules if f"::: netbuf_gym.{name}\n" not in said}
    assert not missing and modules > {"scenarios", "rewards", "zoo"}
    for name in ("congestion_window", "queue_threshold", "receiver_window", "host_buffers"):
        text = (site / "reference" / name / "index.html").read_text()
        assert "<td>" in text and "{features" not in text, name
    assert "least_rtt_risen" in (site / "reference/congestion_window/index.html").read_text()


@pytest.mark.release
def test_formulas_are_set(site):
    pages = [path for path in (ROOT / "docs").glob("*.md") if "$$" in path.read_text()]
    assert len(pages) >= 4
    for path in pages:
        text = (site / path.stem / "index.html").read_text()
        assert text.count('display="block"') == path.read_text().count("$$") / 2, path.name
        assert not re.search(r'class="arithmatex"|\$\$|<merror|<mtext>\\', text), path.name


def test_entries_of_several_names_become_one_each():
    one_by_one = runpy.run_path(str(ROOT / "website/docstrings.py"))["one_by_one"]
    text = "Made of a, b: both.\n\nArgs:\n    a, b: numbers,\n        positive.\n\n    c: another.\n\nIn short:\n    a, b: text"
    made = one_by_one(text)
    assert made.count("    a: numbers,\n        positive.\n") == 1
    assert made.count("    b: numbers,\n        positive.\n\n    c: another.") == 1
    assert made.startswith("Made of a, b: both.") and made.endswith("In short:\n    a, b: text")


def test_pages_that_name_a_command_of_a_study_say_where_it_runs():
    """The installed package has no studies."""
    pages = {path: path.read_text() for path in (ROOT / "docs").rglob("*.md") if path.name != "architecture.md"}
    named = {path: text for path, text in pages.items() if "python -m studies." in text}
    assert len(named) > 4
    assert [str(path) for path, text in named.items() if "installation.md#from-a-checkout" not in text] == []
