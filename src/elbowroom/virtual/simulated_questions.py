"""A simulated node's answers in words: who loses first, at which n, is a minimum kept, controller or link."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from elbowroom.virtual.simulated import LOSS, Curve, LossOnset, onset_of

STEADY = 0.02
"""Communications keep a minimum if the last third of the cores takes less than this share of them."""


class QuestionAnswer(NamedTuple):
    """A question, its answer in sentences, and the name of the figure that shows it."""

    question: str
    sentences: tuple[str, ...]
    figure: str


def answers(curves: Sequence[Curve]) -> tuple[QuestionAnswer, ...]:
    """The four questions, each answered for every placement."""
    findings = [(curve, onset_of(curve)) for curve in curves]
    return (
        QuestionAnswer(
            "Who loses first?",
            tuple(f"{_place(curve)}: {who(onset, curve)}." for curve, onset in findings),
            "who-loses-first",
        ),
        QuestionAnswer(
            "From how many cores on?",
            tuple(f"{_place(curve)}: {_onset(onset, curve)}." for curve, onset in findings),
            "from-which-n",
        ),
        QuestionAnswer(
            "Do communications keep a minimum?",
            tuple(f"{_place(curve)}: {_minimum(onset, curve)}." for curve, onset in findings),
            "minimum-kept",
        ),
        QuestionAnswer(
            "Controller or link?",
            tuple(f"{_place(curve)}: {_station(onset, curve)}." for curve, onset in findings),
            "controller-or-link",
        ),
    )


def who(onset: LossOnset, curve: Curve) -> str:
    """Who loses first, in words."""
    if onset.first == "nobody":
        return f"neither side loses more than {LOSS:.0%} with up to {curve.rows[-1].n} cores"
    if onset.first == "both":
        row = next(row for row in curve.rows if row.n == onset.comp_from)
        worse = "computation" if row.comp_kept < row.comm_kept else "communication"
        return (
            f"both from {_cores(row.n)} on, {worse} more of it (computation keeps {row.comp_kept:.2f}, "
            f"communication {row.comm_kept:.2f} there)"
        )
    other = "communication" if onset.first == "computation" else "computation"
    later = onset.comm_from if onset.first == "computation" else onset.comp_from
    never = f"{other} never" if later is None else f"{other} from {later} on"
    first = onset.comp_from if onset.first == "computation" else onset.comm_from
    return f"{onset.first}, from {_cores(first)} on; {never}"


def _cores(n: int | None) -> str:
    return "1 core" if n == 1 else f"{n} cores"


def _onset(onset: LossOnset, curve: Curve) -> str:
    parts = [
        f"{side} never" if n is None else f"{side} from {_cores(n)}"
        for side, n in (("computation", onset.comp_from), ("communication", onset.comm_from))
    ]
    return f"loss of more than {LOSS:.0%}: {parts[0]}, {parts[1]} (of {curve.rows[-1].n})"


def _minimum(onset: LossOnset, curve: Curve) -> str:
    last = curve.rows[-1]
    if onset.comm_from is None:
        return (
            f"they keep {onset.comm_least:.2f} at least, and lose nothing that a minimum would have to stop"
        )
    verdict = "a minimum is kept" if onset.floor < STEADY else "no minimum yet"
    return (
        f"{verdict}: with {_cores(last.n)} they keep {last.comm_kept:.2f}, and the last third of the cores "
        f"took {max(onset.floor, 0.0):.2f} of it"
    )


def _station(onset: LossOnset, curve: Curve) -> str:
    saturated = [name for name, use in curve.rows[-1].stations.items() if use > 0.95]
    end = f"; with all cores saturated: {', '.join(saturated)}" if saturated else ""
    if onset.first == "nobody":
        return f"neither side loses; most in use with all cores is {onset.station} ({onset.use:.0%}){end}"
    return f"where the loss begins, {onset.station} is in use {onset.use:.0%} of the time{end}"


def _place(curve: Curve) -> str:
    return f"computations on node {curve.comp_node}, communications on node {curve.comm_node}"
