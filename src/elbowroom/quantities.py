"""Quantities as people write and read them: numbers, sizes, times, bandwidths, lists of cores, plurals."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from fractions import Fraction

from elbowroom.errors import UsageError

NARROW_SPACE = "\u202f"
MINUS = "\u2212"

_DECIMAL = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_BINARY = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_SHORT_SIZES = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
"""Letters alone are powers of 1024, as in GNU coreutils: 64k is 64 KiB."""
_UNITS = (
    _SHORT_SIZES
    | {unit.lower(): factor for unit, factor in (_DECIMAL | _BINARY).items()}
    | {unit.lower().removesuffix("b"): factor for unit, factor in _BINARY.items()}
)
_BITS = {"bit": 1, "kbit": 10**3, "mbit": 10**6, "gbit": 10**9, "tbit": 10**12}
_RATE_UNITS = {unit.lower(): factor for unit, factor in (_DECIMAL | _BINARY).items()}
_DIGITS = r"(?:[0-9]{1,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40})"
_POWER = r"(?:[eE][+-]?[0-9]{1,2})?"
_SIZE = re.compile(rf"\s*([+-]?{_DIGITS})\s*([A-Za-z]*)\s*")
_AMOUNT = re.compile(rf"\s*([+-]?{_DIGITS}{_POWER})\s*([A-Za-z%]*)\s*")
_RANGE = re.compile(r"\s*([0-9]+)\s*(?:-\s*([0-9]+)\s*(?::\s*([1-9][0-9]{0,4})\s*)?)?")
LARGEST = 2**60
"""Bytes of the largest size."""
_SIZE_HINT = "write bytes or a unit: 4, 64KiB, 64MiB, 64MB (MB = 1e6 B)"
_RATE_HINT = "write 6GB/s, 800MB/s or 100Gbit/s"
_MEGA = 1e6
"""B/s in a MB/s."""

_LEAST_STEPS = 2
"""Steps that are worth `0-4:2`."""
_UNBROKEN = 4
"""Parts of a list that need no blanks."""

_SECONDS = {
    **dict.fromkeys(("", "s", "sec"), 1.0),
    **dict.fromkeys(("m", "min"), 60.0),
    "h": 3600.0,
    "d": 86400.0,
    "ms": 1e-3,
    **dict.fromkeys(("us", "µs", "μs"), 1e-6),
    "ns": 1e-9,
}
_TIME_PART = re.compile(rf"\s*({_DIGITS}{_POWER})\s*([A-Za-zµμ]*)")
_TIME_HINT = "write seconds or a unit: 90, 60s, 2min, 1h30m"
_SHORT_HINT = "write seconds or a unit: 20us, 1ms, 0.001"
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


def percent_span(share: float, low: float, high: float) -> str:
    """A share with its interval: `31 % (24 to 38 %)`; below 10 % with one decimal."""
    digits = 0 if abs(share) >= 0.1 else 1
    value, first, last = (percent(each, digits=digits) for each in (share, low, high))
    return f"{value} ({first.removesuffix(' %')} to {last})"


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
    """Bytes of `4`, `4B`, `64KiB`, `64MB`, `1.5MiB`, `64k` (MB = 1e6 B, MiB = 2^20 B, k = KiB).

    UsageError where it is no size, not a whole number of bytes, zero or negative.
    """
    match = _SIZE.fullmatch(str(text))
    factor = _UNITS.get(match[2].lower()) if match else None
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


def parse_size_or_none(text: str | int, field: str) -> int:
    """Bytes as of `parse_size`, or 0."""
    return 0 if str(text).strip() == "0" else parse_size(text, field)


def parse_sizes(text: str, field: str) -> tuple[int, ...]:
    """Bytes of `4,64KiB`; UsageError where a part is no size."""
    return tuple(parse_size(word.strip(), field) for word in text.split(","))


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


def parse_bandwidth(text: str | float, field: str, hint: str = _RATE_HINT) -> float:
    """B/s of `6GB/s`, `800 MB/s`, `100Gbit/s` or `100Gbps`; a number without a unit is of B/s already.

    UsageError for anything else, and for `100Gb/s`, which may be bits or bytes.
    """
    if isinstance(text, float | int) and not isinstance(text, bool):
        return float(text)
    amount, per_second = _amount_per_second(str(text))
    match = _AMOUNT.fullmatch(amount)
    unit = match[2] if match else ""
    if match is None or not per_second or not unit:
        raise UsageError("is not a bandwidth", field=field, value=text, hint=hint)
    if re.fullmatch("[kKMGT]b", unit) and per_second == "/s":
        bits, size = f"{unit[0]}bit/s", f"{unit[0]}B/s"
        raise UsageError("may mean bits or bytes", field=field, value=text, hint=f"write {bits} or {size}")
    if re.fullmatch("[kKMGT]b", unit):
        unit += "it"
    factor = _RATE_UNITS.get(unit.lower())
    scale = Fraction(_BITS.get(unit.lower(), 0), 8) if factor is None else Fraction(factor)
    rate = Fraction(match[1]) * scale
    if not scale or not 0 <= rate <= LARGEST:
        raise UsageError("is not a bandwidth", field=field, value=text, hint=hint)
    return float(rate)


def _amount_per_second(text: str) -> tuple[str, str]:
    """An amount, and how `per second` was written: `/s` or `ps`; nothing where it was not."""
    amount, slash, second = text.partition("/")
    if slash:
        return amount, "/s" if second.strip().lower() in ("s", "sec") else ""
    stripped = text.strip()
    return (stripped[:-2], "ps") if stripped[-3:].lower() == "bps" else (text, "")


def parse_mb_per_s(text: str | float, field: str) -> float:
    """MB/s of `12000`, or of a bandwidth with its unit: `12GB/s`."""
    match = _AMOUNT.fullmatch(str(text))
    if match is not None and not match[2]:
        return float(match[1])
    hint = "write MB/s or a unit: 12000, 12GB/s, 100Gbit/s"
    return parse_bandwidth(text, field, hint) / _MEGA


def parse_share(text: str | float, field: str) -> float:
    """The share that `0.05`, `5%` or `5 %` is."""
    return _part(text, field, "write a share or a percentage: 0.05, 5%", bare=1.0)


def parse_percent(text: str | float, field: str) -> float:
    """The share that a number of percent is: 0.05 of `5`, `5%` or `5 %`."""
    return _part(text, field, "write a percentage: 5, 5%", bare=0.01)


def _part(text: str | float, field: str, hint: str, *, bare: float) -> float:
    match = _AMOUNT.fullmatch(str(text))
    if match is None or match[2] not in ("", "%"):
        raise UsageError("is not a percentage", field=field, value=text, hint=hint)
    return float(Fraction(match[1])) * (0.01 if match[2] else bare)


def parse_time(text: str | float, field: str, hint: str = _TIME_HINT) -> float:
    """Seconds of `90`, `0.2 ms`, `200us`, `2min` or `1h30m`; UsageError for anything else."""
    if isinstance(text, float) and math.isfinite(text):
        return text  # Plain data has numbers such as 2e-05, which people do not write.
    total, at, word = Fraction(0), 0, str(text)
    while part := _TIME_PART.match(word, at):
        unit = part[2].lower()
        if unit not in _SECONDS or (not unit and at > 0):
            break  # of several parts, each needs its unit
        total += Fraction(part[1]) * Fraction(str(_SECONDS[unit]))
        at = part.end()
    if not at or word[at:].strip() or isinstance(text, bool):
        raise UsageError("is not a duration", field=field, value=text, hint=hint)
    return float(total)


def parse_duration(text: str | float, field: str) -> float:
    """Seconds of a time as of `parse_time`; UsageError where it is none, zero, or above a month."""
    seconds = parse_time(text, field)
    if not 0 < seconds <= LONGEST:
        raise UsageError("is not between 0 and 30 days", field=field, value=text, hint=_TIME_HINT)
    return seconds


def parse_period(text: str | float, field: str) -> float:
    """Seconds of `20us`, `1ms`, `0.001`; UsageError where it is none, below 1 ns, or above a minute."""
    seconds = parse_time(text, field, _SHORT_HINT)
    if not 1e-9 <= seconds <= 60:
        raise UsageError(
            "is not between a nanosecond and a minute", field=field, value=text, hint=_SHORT_HINT
        )
    return seconds


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
