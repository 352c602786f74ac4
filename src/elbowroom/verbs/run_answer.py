"""How the text of a run ends: its verdict, what explains it, and the command that leads on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from elbowroom.cli.answer import Answer, command_line
from elbowroom.measure.results import IMPORTED

if TYPE_CHECKING:
    from elbowroom.results.result import Finding
    from elbowroom.verbs.run_protocols import JudgedRun

EXPLAINED = ("quick", "contrast", "frequency", "polling")
"""Experiments whose losses `explain` takes apart."""
FITTED = ("cores", "gpu", "gpu-overlap", "intensity", "model", "placement", "ring", "sizes")
"""Experiments whose runs models learn from."""


def run_answer(run: JudgedRun) -> Answer:
    """The answer of a run. What disturbed a run that is not trusted is for `doctor` to look at; what is
    missing of one that was interrupted is measured first.
    """
    verdict = run.verdict
    colour = "yellow" if not verdict.trusted else ("red" if verdict.interference else "green")
    return Answer(verdict.text, _why(run), _next(run), colour)


def _why(run: JudgedRun) -> str:
    """Reasons against the run that its verdict does not give, else what its findings say of the cause."""
    verdict = run.verdict
    if verdict.further_reasons:
        return " ".join(verdict.further_reasons)
    others = [item for item in run.findings if item.text not in verdict.text]
    causes = [item for item in others if item.key in ("contrast", "regimes")]
    first = next(iter(causes or sorted(others, key=_rank)), None)
    return first.text if first else f"It rests on {len(run.points())} points, listed above."


def _rank(finding: Finding) -> int:
    return ("interference", "quiet", "note", "n/a").index(finding.level)


def _next(run: JudgedRun) -> str:
    experiment = str(run.manifest.plan["experiment"])
    if not run.manifest.finished:
        return command_line("run", "--resume", run.path)
    if not run.verdict.trusted and run.manifest.launcher != IMPORTED and not run.machine.virtual:
        return command_line("doctor")
    if experiment in EXPLAINED and run.verdict.interference:
        return command_line("explain", run.path)
    if experiment in FITTED:
        return command_line("fit", run.path)
    return command_line("report", run.path)
