#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes reference.md, beside this file, from the man pages and the tracepoints' headers.

docs/reference.py            # tests/docs sees to it that this was done
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reference.md"
MAN_PAGES = ("tc-patches/*.8", "tcp_pert/*.7", "mininet/*.1")
SECTIONS = ("PARAMETERS", "OPTIONS", "SCHEMES", "STATISTICS", "METRICS", "INFORMATION")
HEAD = """\
# Reference

All options, statistics and tracepoints. `docs/reference.py` makes this page of the man pages,
which say more: the algorithms, examples, notes, and what differs from the papers.
"""
STYLES = {"B": "**", "I": "*", "R": ""}
FONT = re.compile(r"\\f([BIRP])")
EVENT = re.compile(
    r"/\*(?P<says>(?:(?!\*/).)*)\*/\s*TRACE_EVENT\((?P<name>\w+),.*?TP_printk\(\"(?P<form>.*?)\"",
    re.DOTALL,
)


def plain(text: str) -> str:
    """What man(7)'s escapes stand for, Markdown's own signs kept from meaning anything."""
    text = text.replace(r"\c", "").replace(r"\&", "").replace(r"\(dq", '"').replace(r"\-", "-")
    return re.sub(r"([*_<>|])", r"\\\1", text).replace(r"\e", "\\\\")


def styled(text: str, style: str) -> str:
    """TEXT in a font, in which there may be changes of it."""
    found = ""
    for index, part in enumerate(FONT.split(text)):
        if index % 2:
            style = "R" if part == "P" else part
        elif words := plain(part):
            before, after = words[: len(words) - len(words.lstrip())], words.rstrip()
            mark = STYLES[style] if words.strip() else ""
            found += f"{before}{mark}{after.strip()}{mark}{words[len(after) :]}"
    return found


def inline(line: str) -> str:
    """A line of text, or of a font's macro."""
    macro = re.match(r"\.(B|I|R|BI|BR|IB|IR|RB|RI) (.*)", line)
    if not macro:
        return styled(line, "R")
    fonts, rest = macro.groups()
    if len(fonts) == 1:
        return styled(rest.strip('"'), fonts)
    lexer = shlex.shlex(rest, posix=True)
    lexer.whitespace_split, lexer.commenters, lexer.escape, lexer.quotes = True, "", "", '"'
    # neighbours of different fonts, and nothing between them
    return "".join(styled(word, fonts[number % 2]) for number, word in enumerate(lexer))


def sections(page: str) -> Iterator[tuple[str, list[str]]]:
    """The sections of a man page: title, and lines."""
    for part in page.split("\n.SH ")[1:]:
        title, *lines = part.splitlines()
        yield title, lines


def converted(lines: list[str]) -> str:
    """The lines of a section in Markdown: its terms, a paragraph each."""
    found: list[str] = [""]
    code = term = joins = False
    for line in lines:
        macro = line.split(" ")[0]
        if code:
            code = macro != ".fi"
            found[-1] += f"    {line.replace(chr(92) + '-', '-')}\n" if code else ""
        elif macro in (".PP", ".IP"):
            found.append("")
        elif macro in (".TP", ".TQ"):
            found.append("")
            term = True
        elif macro == ".SS":
            found += [f"#### {line[4:]}", ""]
        elif macro == ".nf":
            code = True
            found.append("")
        elif macro in (".fi", ".in"):
            continue
        elif term:
            found[-1] = f"{inline(line)}:"
            term = line.endswith(r"\c")
            if term:
                found[-1] = found[-1].removesuffix(":")
        else:
            between = "" if joins or not found[-1] else " "
            found[-1] += between + inline(line)
        joins = line.endswith(r"\c")
    return "\n\n".join(part.rstrip() for part in found if part.strip())


def described(path: Path) -> str:
    """A man page's part of the reference."""
    text = path.read_text()
    title, number = text.partition(".TH ")[2].split()[:2]
    parts = [f"## {title.lower()}({number})"]
    for name, lines in sections(text):
        if name == "NAME":
            parts.append(inline(lines[0].partition(r" \- ")[2]).capitalize() + ".")
        elif name in SECTIONS:
            parts += [f"### {name.capitalize()}", converted(lines)]
    return "\n\n".join(parts)


def tracepoints() -> str:
    """Those of all modules."""
    parts = [
        "## Tracepoints",
        "Each decision of a law can be watched, with `perf trace`, `bpftrace` or in"
        " `/sys/kernel/tracing/events`. Numbers are fixed point: Q32 is a number times 2^32."
        " `prob` is what the law decided by, and `verdict` what came of it: pass, mark, spare, drop"
        " or overflow.",
    ]
    for header in sorted(ROOT.glob("*/*_trace.h")):
        system = header.name.removesuffix("_trace.h")
        events = list(EVENT.finditer(header.read_text()))
        assert events, header
        for found in events:
            says = re.sub(r"\s*\n \*\s*", " ", found["says"]).strip()
            fields = ", ".join(f"`{name}`" for name in re.findall(r"(\w+)=", found["form"]))
            parts.append(f"`{system}:{found['name']}`: {fields}. {says}")
    return "\n\n".join(parts)


def reference() -> str:
    """The page."""
    pages = [path for pattern in MAN_PAGES for path in sorted(ROOT.glob(pattern))]
    return "\n\n".join([HEAD.rstrip(), *map(described, pages), tracepoints()]) + "\n"


if __name__ == "__main__":
    PAGE.write_text(reference())
