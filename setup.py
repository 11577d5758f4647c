"""Native build, package list, links; the other metadata and the dependencies are in setup.cfg.

The data at the top of the tree, `zoo/`, `conf/` and `results/suites/`, is installed below `netbuf_gym/data`
(`package_dir` in setup.cfg maps it; `netbuf_gym.utils.data` finds it). README.md links to files
beside it; an index shows it elsewhere, so what is uploaded links to the repository (`url` in setup.cfg, its one place). So do
the site's pages that link to files outside of `docs/`, by the same function (`website/hooks.py`).
"""

import re
from collections.abc import Callable
from configparser import ConfigParser
from pathlib import Path

from setuptools import find_packages, setup

HERE = Path(__file__).parent
CONFIG = ConfigParser()
CONFIG.read(HERE / "setup.cfg", encoding="utf-8")
URL = CONFIG["metadata"]["url"]
FILES, RAW = f"{URL}/blob/HEAD", f"{URL}/raw/HEAD"
LINKS = (
    re.compile(r"(?P<before>(?P<image>!)\[[^\[\]]*\]\(\s*<?)(?P<target>[^\s)>]+)"),
    re.compile(r"(?P<before>(?P<image>!?)\[(?:[^\[\]]|\[[^\]]*\]\([^)]*\))*\]\(\s*<?)(?P<target>[^\s)>]+)"),
    re.compile(r"(?P<before>^\s{0,3}(?P<image>!?)\[[^\]]+\]:\s*)(?P<target>\S+)", re.MULTILINE),
    re.compile(r"(?P<before>\b(?:(?P<image>src)|href)\s*=\s*[\"'])(?P<target>[^\"']+)"),
)
"""A picture and a link (which may hold a picture) in a line, the target of a reference, an attribute of HTML."""
CODE = re.compile(r"^```.*?^```|`[^`\n]+`", re.MULTILINE | re.DOTALL)
"""What is no link, however it looks; it may be the text of one."""


def relinked(text: str, to: Callable[[str, bool], str]) -> str:
    """Markdown whose relative links go where `to(target, whether it is a picture)` says; code is left as it is."""

    def link(match: re.Match) -> str:
        target = match["target"]
        if re.match(r"[a-z][a-z0-9+.-]*:|//|#", target, re.IGNORECASE):
            return match[0]
        return match["before"] + to(target, bool(match["image"]))

    def hide(match: re.Match) -> str:
        code.append(match[0])
        return f"\0{len(code) - 1}\0"

    code: list[str] = []
    text = CODE.sub(hide, text)
    for pattern in LINKS:
        text = pattern.sub(link, text)
    return re.sub(r"\0(\d+)\0", lambda match: code[int(match[1])], text)


def absolute(text: str) -> str:
    """Markdown whose links to files beside it go to the repository."""
    return relinked(text, lambda target, image: f"{RAW if image else FILES}/{target.removeprefix('./').lstrip('/')}")


if __name__ == "__main__":
    setup(
        cmake_source_dir=".",
        packages=[
            *find_packages(include=["netbuf_gym", "netbuf_gym.*"]),
            *re.findall(r"netbuf_gym\.data\.\S+", CONFIG["options"]["package_dir"]),
        ],
        long_description=absolute((HERE / "README.md").read_text(encoding="utf-8")),
        project_urls={
            "Homepage": URL,
            "Documentation": f"{FILES}/docs/index.md",
            "Source": URL,
            "Changelog": f"{FILES}/CHANGELOG.md",
            "Issues": f"{URL}/issues",
        },
    )
