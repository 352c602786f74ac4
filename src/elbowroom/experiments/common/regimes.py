"""Where along an axis points are red and blue (results/saturation.py), in a sentence."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from elbowroom.experiments.common.sentences import Values, span_text
from elbowroom.results.result import PointResult
from elbowroom.results.saturation import regime


def regimes_over(
    group: Sequence[PointResult],
    peaks: dict[int, float],
    x: Callable[[PointResult], float],
    at: Callable[[float], str],
) -> tuple[str, Values]:
    """A sentence about where along an axis points are red and blue, and the places as `red` and `blue`; an
    empty sentence where none is.
    """
    sentences = []
    values: Values = {}
    explained = {
        "red": "both sides slow down, as they do where the memory saturates (red)",
        "blue": "only the computation slows down, while the bandwidth is far from saturated (blue)",
    }
    for name, what in explained.items():
        places = sorted(x(item) for item in group if regime(item, peaks) == name)
        if len(places) == 1:
            sentences.append(f"At {at(places[0])} {what}.")
        elif places:
            between = span_text(places[0], places[-1], at)
            sentences.append(f"At {len(places)} of {len(group)} points ({between}) {what}.")
        if places:
            values[name] = ",".join(f"{place:g}" for place in places)
    return " ".join(sentences), values
