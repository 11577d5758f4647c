"""Native build, package list, links; the other metadata and the dependencies are in setup.cfg.

`zoo/` and `conf/` stand at the top of the tree and are installed as `netbuf_gym.zoo` and
`netbuf_gym.conf` (`package_dir` in setup.cfg maps them), so the list of packages is computed here. README.md links to files
beside it; an index shows it elsewhere, so what is uploaded links to the repository (`url` in setup.cfg, its one place).
"""

import re
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


def mapped(name: str) -> list[str]:
    """The package `netbuf_gym.<name>` that lives in the top-level folder `name`, with its subpackages."""
    return [f"netbuf_gym.{name}"] + [f"netbuf_gym.{name}.{sub}" for sub in find_packages(name)]


def absolute(text: str) -> str:
    """Markdown whose links to files beside it go to the repository; code is left as it is."""

    def link(match: re.Match) -> str:
        target = match["target"]
        if re.match(r"[a-z][a-z0-9+.-]*:|//|#", target, re.IGNORECASE):
            return match[0]
        return f"{match['before']}{RAW if match['image'] else FILES}/{target.removeprefix('./').lstrip('/')}"

    parts = re.split(r"(^```.*?^```|`[^`\n]+`)", text, flags=re.MULTILINE | re.DOTALL)
    for i in range(0, len(parts), 2):
        for pattern in LINKS:
            parts[i] = pattern.sub(link, parts[i])
    return "".join(parts)


if __name__ == "__main__":
    setup(
        cmake_source_dir=".",
        packages=find_packages(include=["netbuf_gym", "netbuf_gym.*"]) + mapped("zoo") + mapped("conf"),
        long_description=absolute((HERE / "README.md").read_text(encoding="utf-8")),
        project_urls={
            "Homepage": URL,
            "Documentation": f"{FILES}/docs/index.md",
            "Source": URL,
            "Changelog": f"{FILES}/CHANGELOG.md",
            "Issues": f"{URL}/issues",
        },
    )
