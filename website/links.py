"""Links of Markdown pages: relative ones made absolute for readers elsewhere, an index of packages or the site."""

from __future__ import annotations

import re
from collections.abc import Callable
from configparser import ConfigParser
from pathlib import Path

CONFIG = ConfigParser()
CONFIG.read(Path(__file__).parents[1] / "setup.cfg", encoding="utf-8")
URL = CONFIG["metadata"]["url"]
FILES, RAW = f"{URL}/blob/HEAD", f"{URL}/raw/HEAD"
LINKS = (
    re.compile(r"(?P<before>(?P<image>!)\[[^\[\]]*\]\(\s*<?)(?P<target>[^\s)>]+)"),
    re.compile(r"(?P<before>(?P<image>!?)\[(?:[^\[\]]|\[[^\]]*\]\([^)]*\))*\]\(\s*<?)(?P<target>[^\s)>]+)"),
    re.compile(r"(?P<before>^\s{0,3}(?P<image>!?)\[[^\]]+\]:\s*)(?P<target>\S+)", re.MULTILINE),
    re.compile(r"(?P<before>\b(?:(?P<image>src)|href)\s*=\s*[\"'])(?P<target>[^\"']+)"),
)
"""Forms of links: inline images, inline links (which may hold an image), link references, attributes of HTML."""
CODE = re.compile(r"^```.*?^```|`[^`\n]+`", re.MULTILINE | re.DOTALL)
EXTERNAL = re.compile(r"[a-z][a-z0-9+.-]*:|//|#", re.IGNORECASE)


def replace_links(text: str, to: Callable[[str, bool], str]) -> str:
    """Return Markdown with each relative target replaced by `to(target, whether it is an image)`; code is left unchanged."""

    def replace(match: re.Match[str]) -> str:
        return match[0] if EXTERNAL.match(match["target"]) else match["before"] + to(match["target"], bool(match["image"]))

    def hide(match: re.Match[str]) -> str:
        code.append(match[0])
        return f"\0{len(code) - 1}\0"

    code: list[str] = []
    text = CODE.sub(hide, text)
    for pattern in LINKS:
        text = pattern.sub(replace, text)
    return re.sub(r"\0(\d+)\0", lambda match: code[int(match[1])], text)


def link_to_repository(text: str) -> str:
    """Return Markdown of the repository's root with its relative links leading to the repository's address."""
    return replace_links(text, lambda target, image: f"{RAW if image else FILES}/{target.removeprefix('./').lstrip('/')}")
