"""Whether two runs of a program print the same, apart from what varies from run to run.

Lines may come in any order, since ranks print when they like. A line that all unchanged runs print is to be
printed by others, too; of lines that vary, all but their numbers is. Numbers in lines about times and rates
always vary.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Sequence

_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eEdD][-+]?\d+)?")
_TIMES = re.compile(
    r"\b(?:time[sd]?|timing|elapsed|wall(?:time|clock)?|sec(?:ond)?s?|s|[mun]s|us(?:ec)?|msec|min(?:ute)?s?|"
    r"[kmgt]?i?b(?:ytes)?/s|[kmgt]?flops?(?:/s)?|rates?|speed|performance|fom|bandwidth|latency|date|pid|"
    r"it(?:eration)?s?/s|per (?:second|step|iteration))\b|_time\b|\bt_\w+|\d(?:s|ms|us)\b|\d:\d\d",
    re.IGNORECASE,
)
_MOST_LINES = 1000


def digest(output: str) -> tuple[str, ...]:
    """What is compared of an output: a word for each line, first the line's own hash, then that of its shape
    without numbers; of long outputs the first and the last lines.
    """
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    if len(lines) > _MOST_LINES:
        lines = [*lines[: _MOST_LINES // 2], *lines[-_MOST_LINES // 2 :]]
    return tuple(sorted(_word(line) for line in lines))


def _word(line: str) -> str:
    shape = _NUMBER.sub("#", " ".join(line.split()))
    exact = shape if _TIMES.search(line) else " ".join(line.split())
    return f"{zlib.crc32(exact.encode()):08x}{zlib.crc32(shape.encode()):08x}"


def differing_line(output: Sequence[str], unchanged: Sequence[Sequence[str]]) -> str:
    """Why an output is another one than those of unchanged runs (each as `digest` has it); empty if it is
    none.
    """
    if not unchanged:
        return ""
    stable = Counter(unchanged[0])
    for other in unchanged[1:]:
        stable &= Counter(other)
    printed = Counter(output)
    if stable - printed:
        return "it does not print what the unchanged line prints"
    shapes = {word[8:] for other in unchanged for word in other}
    if any(word[8:] not in shapes for word in printed - stable):
        return "it prints lines that the unchanged line does not print"
    return ""
