"""Numbers as people read them: sensible digits, sizes with the unit they are whole in."""

from __future__ import annotations

import math
from collections.abc import Iterable

from elbowroom.quantities import format_cores, format_size

NARROW_SPACE = "\u202f"
MINUS = "\u2212"
BINARY = ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))


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


def size(value: float) -> str:
    """Bytes exactly, in the unit that spells them shortest: 4 B, 64 KiB, 1 MB."""
    return format_size(round(value))


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


def rounded_size(value: float) -> str:
    """Bytes to three digits in a binary unit, for memories and caches: 376 GiB, 24.8 MiB."""
    for factor, unit in BINARY:
        if value >= factor:
            return f"{number(value / factor, digits=3)} {unit}"
    return f"{round(value)} B"


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


def ranges(values: Iterable[int]) -> str:
    """Numbers of cores in ascending order, short: (0, 2, 1, 5) is `0-2,5`; none is the empty string."""
    return format_cores(sorted(set(values)))


def _fixed(value: float, decimals: int) -> str:
    text = f"{abs(value):.{decimals}f}"
    negative = value < 0 and float(text) != 0
    return MINUS + text if negative else text
