"""What people call things that have another name here: the words of other tools, in synonyms.json.

`words`: a word, and the names that may be meant: of commands, options, plans, machines and pages. `commands`:
what to type in place of a command of another tool, by the group in which that is typed.
"""

from __future__ import annotations

import difflib
import functools
import json
from collections.abc import Iterable
from pathlib import Path

_CLOSE = 0.6
"""Similarity (difflib) from which on a name is taken for a mistyped one."""
_FILE = Path(__file__).with_name("synonyms.json")


@functools.cache
def _table() -> dict[str, dict[str, dict[str, str]]]:
    table: dict[str, dict[str, dict[str, str]]] = json.loads(_FILE.read_text(encoding="utf-8"))
    return table


def meanings(word: str) -> tuple[str, ...]:
    """The names that a word may mean here, the most likely first; none where it is nobody's synonym."""
    return tuple(_table()["words"].get(word.lower(), ()))


def of_words() -> dict[str, tuple[str, ...]]:
    """All words with their meanings."""
    return {word: meanings(word) for word in _table()["words"]}


def of_commands() -> dict[str, dict[str, str]]:
    """What to type in place of a command of another tool, by group and name."""
    return _table()["commands"]


def nearest(word: str, known: Iterable[str], *, count: int = 1) -> list[str]:
    """The known names that a word means or is mistyped of, the best first."""
    names = {name.lower(): name for name in known}
    meant = [names[name] for name in meanings(word) if name in names]
    close = difflib.get_close_matches(word.lower(), names, n=count, cutoff=_CLOSE)
    return list(dict.fromkeys([*meant, *(names[name] for name in close)]))[:count]
