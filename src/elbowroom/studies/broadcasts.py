"""Broadcasts over trees in factorizations: what runs say of chapter 4 of Swartvagher's thesis (2022)."""

from __future__ import annotations

from elbowroom.experiments.common.factorizations.rows import gain, pairs, rows
from elbowroom.plan.factorizations import Task
from elbowroom.results.judgement import above, unanimous
from elbowroom.studies.evidence import Evidence
from elbowroom.studies.judgements import missing
from elbowroom.studies.study import Judge, Outcome


def trees_gain(run: str, task: Task) -> Judge:
    """Whether each tree makes the factorization faster than a message for each recipient."""

    def judge(evidence: Evidence) -> Outcome:
        table = [row for row in rows(evidence.points(run)) if row.program.task == task]
        known = [(tree.program.way, gain(without, tree)) for without, tree in pairs(table)]
        ratios = [(way, ratio) for way, ratio in known if ratio is not None]
        if not ratios:
            return missing(evidence, run)
        ours = ", ".join(f"{way} {ratio.value:.2f} times as fast ({ratio.text()})" for way, ratio in ratios)
        judgement = unanimous([above(ratio, 1.0) for _, ratio in ratios])
        why = "the trees differ, or an interval includes 1" if judgement == "undecided" else ""
        return Outcome(judgement=judgement, ours=ours, why=why)

    return judge
