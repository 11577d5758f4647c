"""Hooks of MkDocs: pages of the site that stand elsewhere in the repository, links between all of them, tables, and formulas.

Pages link as the repository's folders lie, so that they can be read there. Here what a link leads to is looked up: a page of
the site, wherever it stands there, or else a file of the repository, at its address (`url` in setup.cfg).
"""

from __future__ import annotations

import posixpath
import re
from fnmatch import fnmatch
from html import unescape
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from netbuf_gym.cli.program import build_parser
from netbuf_gym.utils.checkout import import_studies

import links  # MkDocs adds the folder of hooks to sys.path while it loads them

ROOT = Path(__file__).parents[1]
fill_tables = import_studies(ROOT, "pages.code_tables").fill_tables
format_commands = import_studies(ROOT, "pages.command_tables").format_commands


def elsewhere() -> dict[str, str]:
    """Pages that are not in `docs/`: where they are in the repository, and where on the site."""
    cards = sorted(path.relative_to(ROOT) for path in ROOT.glob("zoo/agents/*/*/card.md"))
    pages = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md", "zoo/README.md": "zoo/index.md"}
    return pages | {card.as_posix(): f"zoo/{card.parts[2]}/{card.parts[3]}.md" for card in cards}


ELSEWHERE = elsewhere()
FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)


def on_config(config: MkDocsConfig) -> None:
    """The repository's address, for the link in the header; and the pages that the navigation names by a pattern."""
    config.repo_url, config.edit_uri = links.URL, "blob/HEAD/"
    there = [path.relative_to(config.docs_dir).as_posix() for path in Path(config.docs_dir).rglob("*.md")]
    config.nav = spelled(config.nav, sorted([*there, *ELSEWHERE.values()]))


def spelled(nav: Any, pages: list[str]) -> Any:
    """Navigation with the pages in place of each pattern that they match at its depth, agents under their names.

    An index of a folder is none of the pages that a pattern stands for.
    """
    if isinstance(nav, dict):
        return {title: spelled(entry, pages) for title, entry in nav.items()}
    if not isinstance(nav, list):
        return nav
    entries: list[Any] = []
    for entry in nav:
        if isinstance(entry, str) and "*" in entry:
            found = [page for page in pages if fnmatch(page, entry) and page.count("/") == entry.count("/")]
            found = [page for page in found if not page.endswith("/index.md")]
            entries += [{page[len("zoo/") : -len(".md")]: page} if page.startswith("zoo/") else page for page in found]
        else:
            entries.append(spelled(entry, pages))
    return entries


def on_files(files: Files, config: MkDocsConfig) -> None:
    """Adds the pages that are not in `docs/`, and says where in the repository each page is."""
    for file in files.documentation_pages():
        file.edit_uri = f"docs/{file.src_uri}"
    for source, uri in ELSEWHERE.items():
        file = File.generated(config, uri, abs_src_path=str(ROOT / source))
        file.edit_uri = source
        files.append(file)


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Fill the tables of a page that are made from the package, and follow its links; the appendix is not searched."""
    if page.file.src_uri.startswith("appendix/"):
        page.meta["search"] = {"exclude": True}
    markdown = fill_tables(markdown, {"commands": lambda: format_commands(build_parser())})
    here, uri = posixpath.dirname(page.file.edit_uri or ""), page.file.src_uri

    def to(target: str, image: bool) -> str:
        path, mark, part = target.partition("#")
        path = posixpath.normpath(posixpath.join(here, path))
        there = ELSEWHERE.get(path) or (path.removeprefix("docs/") if path.startswith("docs/") else None)
        if there is None:
            there = f"{links.RAW if image else links.FILES}/{path}"
        else:
            there = posixpath.relpath(there, posixpath.dirname(uri) or ".")
        return there + mark + part

    return links.replace_links(markdown, to)


def on_page_content(html: str, **_: Any) -> str:
    """Sets the formulas of a page, $...$ and $$...$$, as MathML, which browsers draw without a script."""
    return FORMULA.sub(lambda found: convert(unescape(found[2]), display="block" if found[1] == "div" else "inline"), html)
