"""The code blocks of a Markdown document, every one of a known kind."""

import re
from pathlib import Path
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

KINDS = ("console", "python", "text", "toml", "yaml")
"""``text`` is what the Python block before it prints; ``yaml`` a file of events or an excerpt of
one; ``toml`` settings."""

_MARKER = re.compile(r"<!-- not run:\s+(\S.*\S)\s+-->\s*", re.DOTALL)


class Block(NamedTuple):
    """A fenced block."""

    where: str
    """Document and line, for messages."""
    kind: str
    text: str
    not_run: str | None
    """The reason why it cannot run in a test, from ``<!-- not run: REASON -->`` before it."""


def parsed(path: Path) -> list[Token]:
    return MarkdownIt("commonmark").enable("table").parse(path.read_text(encoding="utf-8"))


def blocks_of(path: Path) -> list[Block]:
    """Find all blocks.

    Raises:
        ValueError: a block is indented, has no known kind, or a marker stands before no block.
    """
    blocks: list[Block] = []
    reason: str | None = None
    for token in parsed(path):
        where = f"{path.name}:{token.map[0] + 1}" if token.map else path.name
        if token.type == "code_block":
            raise ValueError(f"{where}: an indented block: fence it and name its kind")
        if token.type == "fence":
            kind = token.info.strip()
            if kind not in KINDS:
                raise ValueError(f"{where}: a block of kind {kind!r}: known are {KINDS}")
            blocks.append(Block(where, kind, token.content, reason))
            reason = None
        elif reason is not None:
            raise ValueError(f"{where}: a block should follow the marker")
        elif token.type == "html_block":
            marker = _MARKER.fullmatch(token.content)
            if marker is None:
                raise ValueError(f"{where}: HTML that is not <!-- not run: REASON -->")
            reason = " ".join(marker[1].split())
    if reason is not None:
        raise ValueError(f"{path.name}: a block should follow the marker at the end")
    return blocks


def links_of(path: Path) -> list[str]:
    """Where the document's links and images lead."""
    inside = [child for token in parsed(path) for child in token.children or ()]
    result = [token.attrGet("href") or token.attrGet("src") for token in inside]
    return [str(link) for link in result if link is not None]
