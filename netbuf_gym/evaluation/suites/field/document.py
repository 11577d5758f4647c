"""Report made of blocks, as Markdown and as a self-contained HTML page."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template

from netbuf_gym.evaluation.suites.field.suite import Table
from netbuf_gym.utils.tables import NUMBER, markdown_table

PAGE = Template("""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title><style>
:root { --ink: #1b1f24; --line: #d9dee4; --back: #fff; --band: #f4f6f8; --bad: #b3541e; --good: #0a6b3d; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8eaed; --line: #3a4049; --back: #16191d; --band: #1f2429; } }
body { margin: 0 auto; max-width: 1180px; padding: 1.2rem; font: 15px/1.5 system-ui, sans-serif; color: var(--ink);
       background: var(--back); }
p, ul { max-width: 80ch; } .scroll { overflow-x: auto; } table { border-collapse: collapse; font-size: .88rem; }
th, td { padding: .25rem .55rem; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
th { background: var(--band); } td.n { text-align: right; font-variant-numeric: tabular-nums; }
figure { margin: 1rem 0; } img { max-width: 100%; background: #fff; } code { background: var(--band); padding: 0 .25em; }
tr.flag td { color: var(--bad); font-weight: 600; }
</style></head><body>
$body
</body></html>
""")
FLAGS = ("FLAG", "no", "failed")
"""Texts that highlight the row of a table in which a cell has one of them."""


@dataclass(frozen=True)
class Heading:
    """Heading of a section."""

    text: str
    depth: int = 2


@dataclass(frozen=True)
class Lines:
    """Paragraphs, or items of a list; `code` in backquotes."""

    lines: Sequence[str]
    listed: bool = False


@dataclass(frozen=True)
class Picture:
    """Image, linked from the Markdown and embedded in the HTML page."""

    path: Path
    caption: str


Block = Heading | Lines | Picture | Table


def render_markdown(blocks: Sequence[Block], folder: Path) -> str:
    """Return the report as Markdown; images are linked relative to the folder that holds the report."""
    return "\n\n".join(_render_block(block, folder) for block in blocks) + "\n"


def _render_block(block: Block, folder: Path) -> str:
    if isinstance(block, Heading):
        return f"{'#' * block.depth} {block.text}"
    if isinstance(block, Lines):
        return "\n".join(f"* {line}" for line in block.lines) if block.listed else "\n\n".join(block.lines)
    if isinstance(block, Picture):
        return f"![{block.caption}]({block.path.relative_to(folder).as_posix()})"
    parts = [f"### {block.title}", block.says, markdown_table(block.header, block.rows)]
    return "\n\n".join(part for part in parts if part)


def render_page(title: str, blocks: Sequence[Block]) -> str:
    """Return the report as an HTML page with embedded images."""
    return PAGE.substitute(title=html.escape(title), body="\n".join(map(_render_html, blocks)))


def _render_html(block: Block) -> str:
    if isinstance(block, Heading):
        return f"<h{block.depth}>{_render_inline(block.text)}</h{block.depth}>"
    if isinstance(block, Lines):
        if block.listed:
            return "<ul>" + "".join(f"<li>{_render_inline(line)}</li>" for line in block.lines) + "</ul>"
        return "\n".join(f"<p>{_render_inline(line)}</p>" for line in block.lines)
    if isinstance(block, Picture):
        data = base64.b64encode(block.path.read_bytes()).decode()
        caption = _render_inline(block.caption)
        return f'<figure><img alt="{caption}" src="data:image/png;base64,{data}"><figcaption>{caption}</figcaption></figure>'
    head = "".join(f"<th>{_render_inline(cell)}</th>" for cell in block.header)
    body = "".join(_render_row(row) for row in block.rows)
    said = f"<p>{_render_inline(block.says)}</p>" if block.says else ""
    table = f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    return f"<h3>{_render_inline(block.title)}</h3>{said}{table}"


def _render_row(row: Sequence[str]) -> str:
    flag = ' class="flag"' if any(cell in FLAGS for cell in row) else ""
    cells = "".join(
        f'<td class="n">{_render_inline(c)}</td>' if NUMBER.fullmatch(c) else f"<td>{_render_inline(c)}</td>" for c in row
    )
    return f"<tr{flag}>{cells}</tr>"


def _render_inline(text: str) -> str:
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", html.escape(text, quote=True))
