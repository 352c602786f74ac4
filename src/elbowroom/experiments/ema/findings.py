"""What extraneous accesses did, finding by finding."""

from __future__ import annotations

from collections.abc import Sequence

from elbowroom.experiments.common.sentences import nothing
from elbowroom.experiments.ema.cases import AccessCase, cases
from elbowroom.experiments.ema.sentences import (
    first_observation,
    misses,
    open_question,
    rises,
    second_observation,
    which_side,
)
from elbowroom.machine.topology import Machine
from elbowroom.results.result import Finding, PointResult


def findings(results: Sequence[PointResult], machine: Machine) -> tuple[Finding, ...]:
    """Rises of the floor past each cache, the side that hurts more, the paper's claims, and misses."""
    every = cases(results, machine)
    findings = [rises(case) for case in every]
    for pair in _pairs(every):
        findings += [
            which_side(*pair),
            *(first_observation(case) for case in pair),
            second_observation(*pair),
        ]
    paired = {id(case) for pair in _pairs(every) for case in pair}
    findings += [
        first_observation(case) for case in every if case.who not in ("none",) and id(case) not in paired
    ]
    findings += [open_question(case) for case in every if case.who == "bystanders"]
    findings += [finding for case in every for finding in misses(case)]
    return tuple(findings) or (nothing("ema", "Extraneous accesses"),)


def _pairs(every: Sequence[AccessCase]) -> list[tuple[AccessCase, AccessCase]]:
    """The sender's and the receiver's accesses of the same kind."""
    return [
        (sender, receiver)
        for sender in every
        for receiver in every
        if (sender.who, receiver.who) == ("sender", "receiver") and sender.alike(receiver)
    ]
