"""Broadcasts over trees in factorizations: what runs say of chapter 4 of Swartvagher's thesis (2022)."""

from __future__ import annotations

from elbowroom.experiments.common.factorizations.results import gain, pairs, rows
from elbowroom.points.factorizations import Task
from elbowroom.results.curves import TOLERANCE
from elbowroom.results.judgement import above, in_some, unanimous
from elbowroom.stats.interval import Interval
from elbowroom.studies.evidence import Evidence
from elbowroom.studies.judgements import missing
from elbowroom.studies.study import Judge, Outcome

FASTER = 1 + TOLERANCE
"""Times as fast from which a factorization is faster."""


def trees_gain(run: str, task: Task) -> Judge:
    """Whether each tree makes the factorization faster than a message for each recipient, on the matrix where
    it gains most (`up to` in the thesis).
    """

    def judge(evidence: Evidence) -> Outcome:
        table = [row for row in rows(evidence.points(run)) if row.program.task == task]
        known = [(tree.program.way, gain(without, tree)) for without, tree in pairs(table)]
        gains: dict[str, list[Interval]] = {}
        for way, ratio in known:
            if ratio is not None:
                gains.setdefault(way, []).append(ratio)
        if not gains:
            return missing(evidence, run)
        best = {way: max(ratios, key=lambda ratio: ratio.low) for way, ratios in gains.items()}
        ours = ", ".join(f"{way} {one.value:.2f} times as fast ({one.text()})" for way, one in best.items())
        judgement = unanimous(
            [in_some([above(ratio, FASTER) for ratio in ratios]) for ratios in gains.values()]
        )
        why = "the trees differ, or an interval includes 1.05" if judgement == "undecided" else ""
        return Outcome(judgement=judgement, ours=f"at best {ours}", why=why)

    return judge
