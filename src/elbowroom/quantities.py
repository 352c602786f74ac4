"""Sizes, durations and lists of cores as people write them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction

from elbowroom.errors import UsageError

_DECIMAL = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_BINARY = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_UNITS = {unit.lower(): factor for unit, factor in (_DECIMAL | _BINARY).items()}
_SIZE = re.compile(r"\s*([+-]?[0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*")
_RANGE = re.compile(r"\s*([0-9]+)\s*(?:-\s*([0-9]+)\s*(?::\s*([1-9][0-9]{0,4})\s*)?)?")
LARGEST = 2**60
"""Bytes of the largest size."""

_HINT = "write bytes or a unit: 4, 64KiB, 64MiB, 64MB (MB = 1e6 B)"


def parse_size(text: str | int, field: str = "sizes") -> int:
    """Bytes of `4`, `4B`, `64KiB`, `64MB`, `1.5MiB` (MB = 1e6 B, MiB = 2^20 B).

    UsageError where it is no size, not a whole number of bytes, zero or negative.
    """
    match = _SIZE.fullmatch(str(text))
    factor = _UNITS.get((match[2] or "B").lower()) if match else None
    if match is None or factor is None or isinstance(text, bool):
        raise UsageError("not a size", field=field, value=text, hint=_HINT)
    size = Fraction(match[1]) * factor
    if size.denominator != 1:
        raise UsageError("not a whole number of bytes", field=field, value=text, hint=_HINT)
    if size <= 0:
        raise UsageError("a size is at least 1 B", field=field, value=text, hint=_HINT)
    if size > LARGEST:
        raise UsageError("is more than any machine has", field=field, value=text, hint="give at most 1 EiB")
    return int(size)


def format_size(size: int) -> str:
    """The shortest exact spelling: `4 B`, `64 KiB`, `64 MB`; bytes where neither family divides it."""
    if size == 0:
        return "0 B"
    choices = [(size // factor, unit) for unit, factor in (_DECIMAL | _BINARY).items() if size % factor == 0]
    value, unit = min(choices, key=lambda choice: (abs(choice[0]), choice[1]))
    return f"{value} {unit}"


def parse_cores(text: str | int, field: str = "comp_cores") -> tuple[int, ...]:
    """Core numbers of `1-7,9`, or of `0-6:2` for (0, 2, 4, 6), in the order written; UsageError where it is
    none or names a core twice.
    """
    cores: list[int] = []
    for part in str(text).split(","):
        match = _RANGE.fullmatch(part)
        if match is None:
            raise UsageError(
                "not a list of cores", field=field, value=text, hint="write numbers and ranges: 1-7,9"
            )
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise UsageError(
                "a range counts upwards", field=field, value=part.strip(), hint=f"write {last}-{first}"
            )
        if last - first > 65536:
            raise UsageError(
                "more cores than any machine has", field=field, value=part.strip(), hint="write 1-7,9"
            )
        cores.extend(range(first, last + 1, int(match[3] or 1)))
    if len(set(cores)) != len(cores):
        raise UsageError("a core is named twice", field=field, value=text, hint="name each core once")
    return tuple(cores)


def format_cores(cores: Sequence[int]) -> str:
    """`1-3,7` for (1, 2, 3, 7): the inverse of `parse_cores`, as the probe reads it."""
    runs: list[list[int]] = []
    for core in cores:
        if runs and core == runs[-1][1] + 1:
            runs[-1][1] = core
        else:
            runs.append([core, core])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def short_cores(cores: Sequence[int]) -> str:
    """The same for people: steps as in `0-6:2`, and blanks where a long list may be wrapped."""
    parts: list[str] = []
    place = 0
    while place < len(cores):
        step = cores[place + 1] - cores[place] if place + 1 < len(cores) else 0
        end = place
        while step > 0 and end + 1 < len(cores) and cores[end + 1] - cores[end] == step:
            end += 1
        if end - place < (1 if step == 1 else _LEAST_STEPS):
            end = place
        parts.append(
            str(cores[place])
            if end == place
            else f"{cores[place]}-{cores[end]}" + (f":{step}" if step > 1 else "")
        )
        place = end + 1
    return (", " if len(parts) > _UNBROKEN else ",").join(parts)


_LEAST_STEPS = 2
"""Steps that are worth `0-4:2`."""
_UNBROKEN = 4
"""Parts of a list that need no blanks."""


_SECONDS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_SHORT = {"": 1.0, "s": 1.0, "ms": 1e-3, "us": 1e-6}
_SHORT_HINT = "write seconds or a unit: 20us, 1ms, 0.001"
_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", re.ASCII)
_TIME_HINT = "write seconds or a unit: 90, 60s, 2min, 1.5h"
MOST_REPETITIONS = 10_000
"""More tell nothing that these do not, and would only fill memory and disk."""
LONGEST = 30 * 86400.0
"""Seconds: no run is planned for more than a month."""


def parse_duration(text: str | float, field: str) -> float:
    """Seconds of `90`, `60s`, `2min`, `1.5h`; UsageError where it is none, zero, or above a month."""
    seconds = _seconds(text, field, _SECONDS, _TIME_HINT)
    if not 0 < seconds <= LONGEST or not math.isfinite(seconds):
        raise UsageError("is not between 0 and 30 days", field=field, value=text, hint=_TIME_HINT)
    return seconds


def parse_period(text: str | float, field: str) -> float:
    """Seconds of `20us`, `1ms`, `0.001`; UsageError where it is none, below 1 ns, or above a minute."""
    # Plain data has numbers such as 2e-05, which people do not write.
    seconds = float(text) if isinstance(text, float) else _seconds(text, field, _SHORT, _SHORT_HINT)
    if not 1e-9 <= seconds <= 60:
        raise UsageError(
            "is not between a nanosecond and a minute", field=field, value=text, hint=_SHORT_HINT
        )
    return round(seconds, 12)  # 20us is 2e-05, not 1.9999999999999998e-05


def _seconds(text: str | float, field: str, units: Mapping[str, float], hint: str) -> float:
    match = None if isinstance(text, bool) else _DURATION.fullmatch(str(text))
    factor = units.get(match[2].lower()) if match else None
    if match is None or factor is None:
        raise UsageError("is not a duration", field=field, value=text, hint=hint)
    return float(match[1]) * factor
