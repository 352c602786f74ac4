"""How long a plan measures: durations as people write them, and the most repetitions."""

from __future__ import annotations

import math
import re

from elbowroom.errors import UsageError

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", re.ASCII)
_HINT = "write seconds or a unit: 90, 60s, 2min, 1.5h"
MOST_REPETITIONS = 10_000
"""More tell nothing that these do not, and would only fill memory and disk."""
LONGEST = 30 * 86400.0
"""Seconds: no run is planned for more than a month."""


def parse_duration(text: str | float, field: str) -> float:
    """Seconds of `90`, `60s`, `2min`, `1.5h`; UsageError where it is none, zero, or above a month."""
    match = None if isinstance(text, bool) else _DURATION.fullmatch(str(text))
    factor = _UNITS.get(match[2].lower()) if match else None
    if match is None or factor is None:
        raise UsageError("is not a duration", field=field, value=text, hint=_HINT)
    seconds = float(match[1]) * factor
    if not 0 < seconds <= LONGEST or not math.isfinite(seconds):
        raise UsageError("is not between 0 and 30 days", field=field, value=text, hint=_HINT)
    return seconds
