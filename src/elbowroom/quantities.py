"""Quantities as people write and read them: numbers, sizes, times, bandwidths, lists of cores, plurals."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from elbowroom.errors import UsageError

NARROW_SPACE = "\u202f"
MINUS = "\u2212"

_DECIMAL = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_BINARY = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_UNITS = {unit.lower(): factor for unit, factor in (_DECIMAL | _BINARY).items()}
_SIZE = re.compile(r"\s*([+-]?[0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*")
_RANGE = re.compile(r"\s*([0-9]+)\s*(?:-\s*([0-9]+)\s*(?::\s*([1-9][0-9]{0,4})\s*)?)?")
LARGEST = 2**60
"""Bytes of the largest size."""
_SIZE_HINT = "write bytes or a unit: 4, 64KiB, 64MiB, 64MB (MB = 1e6 B)"

_LEAST_STEPS = 2
"""Steps that are worth `0-4:2`."""
_UNBROKEN = 4
"""Parts of a list that need no blanks."""

_SECONDS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_SHORT = {"": 1.0, "s": 1.0, "ms": 1e-3, "us": 1e-6}
_SHORT_HINT = "write seconds or a unit: 20us, 1ms, 0.001"
_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", re.ASCII)
_TIME_HINT = "write seconds or a unit: 90, 60s, 2min, 1.5h"
TIME_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))
"""Units of times, in s."""
MOST_REPETITIONS = 10_000
"""More tell nothing that these do not, and would only fill memory and disk."""
LONGEST = 30 * 86400.0
"""Seconds: no run is planned for more than a month."""


def number(value: float, digits: int = 4) -> str:
    """`value` to `digits` significant digits: 0.6412, 13 000 (thin spaces from 10 000 on), never an exponent
    between 1e-4 and 1e15. `not a number` and infinities are written as words.
    """
    if math.isnan(value):
        return "n/a"
    if math.isinf(value):
        return "infinite" if value > 0 else f"{MINUS}infinite"
    if value == 0:
        return "0"
    size = abs(value)
    sign = MINUS if value < 0 else ""
    if size < 1e-4 or size >= 1e15:
        return sign + f"{size:.{digits - 1}e}"
    decimals = max(0, digits - 1 - math.floor(math.log10(size)))
    text = f"{size:.{decimals}f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    whole, dot, rest = text.partition(".")
    if len(whole) > 4:
        whole = f"{int(whole):,}".replace(",", NARROW_SPACE)
    return sign + whole + dot + rest


def plural(count: int, noun: str) -> str:
    """`1 core`, `3 cores`, `0 cores`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def percent(share: float, *, digits: int = 1, sign: bool = False) -> str:
    """A share as `12.3 %`, zero without a minus."""
    text = f"{100 * share:{'+' if sign else ''}.{digits}f}"
    return f"{f'{0:.{digits}f}' if float(text) == 0 else text} %"


def unit(name: str) -> str:
    """A unit of the probe as people write it: `us` is µs."""
    return "µs" if name == "us" else name


def rate(value: float, unit: str) -> str:
    """A rate to three digits, from 10 000 on in the next larger unit: `29.2 GB/s`, `808 Tflop/s`."""
    prefixes = "MGTP"
    if unit[:1] not in prefixes:
        return f"{number(value, digits=3)} {unit}"
    place = prefixes.index(unit[0])
    while abs(value) >= 1e4 and place + 1 < len(prefixes):
        value, place = value / 1e3, place + 1
    return f"{number(value, digits=3)} {prefixes[place]}{unit[1:]}"


def interval(value: float, low: float, high: float) -> str:
    """`0.64 (0.62 to 0.66)`, with as many decimals as the interval's width deserves (two to four)."""
    width = abs(high - low)
    decimals = 2 if width >= 0.02 else 3 if width >= 0.002 else 4
    return with_span(_fixed(value, decimals), _fixed(low, decimals), _fixed(high, decimals))


def with_span(value: str, low: str, high: str) -> str:
    """A value with its interval as every text shows them: `0.64 (0.62 to 0.66)`; all three are formatted."""
    return f"{value} ({span(low, high)})"


def span(low: str, high: str) -> str:
    """An interval alone, as every table shows it: `0.62 to 0.66`. A dash would be taken for a minus."""
    return f"{low} to {high}"


def _fixed(value: float, decimals: int) -> str:
    text = f"{abs(value):.{decimals}f}"
    negative = value < 0 and float(text) != 0
    return MINUS + text if negative else text


def parse_size(text: str | int, field: str = "sizes") -> int:
    """Bytes of `4`, `4B`, `64KiB`, `64MB`, `1.5MiB` (MB = 1e6 B, MiB = 2^20 B).

    UsageError where it is no size, not a whole number of bytes, zero or negative.
    """
    match = _SIZE.fullmatch(str(text))
    factor = _UNITS.get((match[2] or "B").lower()) if match else None
    if match is None or factor is None or isinstance(text, bool):
        raise UsageError("not a size", field=field, value=text, hint=_SIZE_HINT)
    size = Fraction(match[1]) * factor
    if size.denominator != 1:
        raise UsageError("not a whole number of bytes", field=field, value=text, hint=_SIZE_HINT)
    if size <= 0:
        raise UsageError("a size is at least 1 B", field=field, value=text, hint=_SIZE_HINT)
    if size > LARGEST:
        raise UsageError("is more than any machine has", field=field, value=text, hint="give at most 1 EiB")
    return int(size)


def format_size(size: float) -> str:
    """The shortest exact spelling of whole bytes: `4 B`, `64 KiB`, `64 MB`; bytes where neither family
    divides them.
    """
    size = round(size)
    if size == 0:
        return "0 B"
    choices = [(size // factor, unit) for unit, factor in (_DECIMAL | _BINARY).items() if size % factor == 0]
    value, unit = min(choices, key=lambda choice: (abs(choice[0]), choice[1]))
    return f"{value} {unit}"


def rounded_size(value: float) -> str:
    """Bytes to three digits in a binary unit, for memories and caches: 376 GiB, 24.8 MiB."""
    for unit, factor in reversed(_BINARY.items()):
        if value >= factor:
            return f"{number(value / factor, digits=3)} {unit}"
    return f"{round(value)} B"


def parse_bandwidth(text: str, field: str) -> float:
    """B/s of `6GB/s` or `800MB/s`; UsageError for anything else."""
    size, slash, second = text.partition("/")
    if not slash or second.strip() != "s":
        raise UsageError("is not a bandwidth", field=field, value=text, hint="for instance 6GB/s")
    return float(parse_size(size, field))


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


def duration(seconds: float) -> str:
    """A rough time to wait: `45 s`, `12 min`, `3 h 20 min`."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


def short_time(seconds: float, *, digits: int = 3, smallest: str = "us") -> str:
    """A measured time in the unit that reads best, down to `smallest`: `3.1 ms`."""
    for factor, unit in TIME_UNITS:
        if abs(seconds) >= factor or unit == smallest:
            return f"{number(seconds / factor, digits)} {unit}"
    raise AssertionError(smallest)


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


def ranges(values: Iterable[int]) -> str:
    """Numbers of cores in ascending order, short: (0, 2, 1, 5) is `0-2,5`; none is the empty string."""
    return format_cores(sorted(set(values)))


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
