"""`elbowroom help WORD`: commands, options, plans and pages about something, the best ones first."""

from __future__ import annotations

import re
import shutil
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import click

from elbowroom import synonyms

MOST = 10
"""Entries that are printed."""
_WIDEST, _NARROWEST = 100, 20
_NAME, _TITLE, _LINE = 10.0, 5.0, 4.0
"""Scores of a word in the name, the title and another line of an entry."""
_SYNONYM, _BEGINNING = 0.35, 0.6
"""Factors: of a synonym, and of a word that only begins so."""
_FOLDERS = {"guide": 0.9, "reference": 0.7, "papers": 0.4, "measured": 0.3, "design": 0.3}
"""Factors of pages by folder: who searches wants to do something."""
_SHORTEST = 3
"""Letters of a word that may be the beginning of another one."""


class HelpEntry(NamedTuple):
    """A command, a plan or a page: what to type for it, its title, and other lines that may match."""

    name: str
    typed: str
    title: str
    lines: tuple[str, ...] = ()
    factor: float = 1.0


class HelpMatch(NamedTuple):
    """An entry, how well it matches, and the line that does; empty where that is the title."""

    score: float
    entry: HelpEntry
    line: str


def entries_of_commands(commands: Iterable[tuple[Sequence[str], click.Command]]) -> Iterator[HelpEntry]:
    """The commands with their options."""
    for path, command in commands:
        name = " ".join(path[1:])
        context = click.Context(command, info_name=name, **command.context_settings)
        title, _, text = " ".join((command.help or "").split("\n\n")[0].split()), "", command.help or ""
        records = (item.get_help_record(context) for item in command.get_params(context))
        options = tuple(f"{record[0]}  {record[1]}" for record in records if record is not None)
        rest = tuple(" ".join(part.split()) for part in text.split("\n\n")[1:])
        yield HelpEntry(name, f"elbowroom {name}", title, (*options, *rest))


def entries_of_pages(pages: Mapping[str, Path]) -> Iterator[HelpEntry]:
    """The pages of the documentation."""
    for name, path in pages.items():
        title, *lines = path.read_text(encoding="utf-8").splitlines() or [""]
        factor = _FOLDERS.get(path.parent.name, 0.9)
        plain = tuple(filter(None, map(_plain, lines)))
        yield HelpEntry(name, f"elbowroom help {name}", title.lstrip("# "), plain, factor)


def _plain(line: str) -> str:
    """A line of a page without marks of Markdown; empty where it says nothing."""
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", line).strip().strip("|#> ").replace(" | ", ": ")
    return text if re.search(r"[A-Za-z]{3}", text) and not text.startswith(("```", "![")) else ""


def search(words: Sequence[str], entries: Iterable[HelpEntry]) -> list[HelpMatch]:
    """The entries in which every word, or a synonym of it, stands; the best first."""
    wanted = [_variants(word) for word in words]
    matches = [match for entry in entries if (match := _match(entry, wanted)) is not None]
    return sorted(matches, key=lambda match: (-match.score, match.entry.name))


def _variants(word: str) -> dict[re.Pattern[str], float]:
    """Patterns of the word, its singular and its synonyms, each with its factor."""
    plain = word.lower()
    forms = {plain: 1.0}
    for ending in ("s", "es", "ing"):
        if plain.endswith(ending) and len(plain) - len(ending) >= _SHORTEST:
            forms[plain.removesuffix(ending)] = 1.0
    forms = dict.fromkeys(synonyms.meanings(plain), _SYNONYM) | forms
    patterns = {}
    for form, factor in forms.items():
        whole = re.escape(form)
        patterns[re.compile(rf"(?<!\w){whole}(?!\w)", re.IGNORECASE)] = factor
        if len(form) >= _SHORTEST:
            patterns[re.compile(rf"(?<!\w){whole}\w", re.IGNORECASE)] = factor * _BEGINNING
    return patterns


def _match(entry: HelpEntry, wanted: Sequence[Mapping[re.Pattern[str], float]]) -> HelpMatch | None:
    total, named = 0.0, True
    for patterns in wanted:
        name = _factor(entry.name, patterns) * _NAME
        title = _factor(entry.title, patterns) * _TITLE
        line = max((_factor(text, patterns) for text in entry.lines), default=0.0) * _LINE
        if not (name or title or line):
            return None
        total += name + title + line
        named = named and bool(name or title)
    if named:
        return HelpMatch(total * entry.factor, entry, "")
    best = max(entry.lines, key=lambda text: sum(_factor(text, patterns) for patterns in wanted))
    return HelpMatch(total * entry.factor, entry, best)


def _factor(text: str, patterns: Mapping[re.Pattern[str], float]) -> float:
    return max((factor for pattern, factor in patterns.items() if pattern.search(text)), default=0.0)


def nearest_words(words: Sequence[str], entries: Iterable[HelpEntry]) -> list[str]:
    """Words of names, titles and options that are spelled like one of these."""
    texts = [text for entry in entries for text in (entry.name, entry.title)]
    texts += synonyms.of_words()
    known = {part.lower() for text in texts for part in re.findall(r"[A-Za-z][\w-]{2,}", text)}
    return list(dict.fromkeys(near for word in words for near in synonyms.nearest(word, known, count=3)))


def shown(matches: Sequence[HelpMatch]) -> str:
    """What to type for each match, its title, and the line that matches, as wide as the terminal."""
    width = min(_WIDEST, max(_NARROWEST, shutil.get_terminal_size().columns))
    lines = []
    for match in matches[:MOST]:
        lines.append(match.entry.typed)
        for text in filter(None, (match.entry.title, match.line)):
            lines += textwrap.wrap(textwrap.shorten(text, 3 * width, placeholder=" …"), width - 4,
                                   initial_indent="    ", subsequent_indent="    ")  # fmt: skip
    if len(matches) > MOST:
        lines.append(f"and {len(matches) - MOST} more: add a word")
    return "\n".join(lines) + "\n"
