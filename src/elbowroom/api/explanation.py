"""Where the losses of runs come from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from elbowroom.api.runs import Run, open
from elbowroom.draw.files import save_panels
from elbowroom.errors import UsageError
from elbowroom.explain.explainer import explain as explained
from elbowroom.explain.explanation import ChainStep as ChainStep
from elbowroom.explain.explanation import ExplainedPoint as ExplainedPoint
from elbowroom.explain.explanation import Explanation as Explanation
from elbowroom.explain.explanation import SideLoss as SideLoss
from elbowroom.explain.figures import figures
from elbowroom.explain.words import kernel_text as kernel_text
from elbowroom.machine.identity import HARDWARE, check_same, difference

if TYPE_CHECKING:
    from elbowroom.draw.figure import Figure


COLUMNS = 2


def explain(
    run: Run | Path | str,
    *more: Run | Path | str,
    kernel: str | None = None,
    cores: int | None = None,
    size: int | None = None,
) -> Explanation:
    """How much of the loss comes from frequency, caches, memory controller, link, polling, runtime system,
    scheduling, by contrast between the points of one or several runs of one machine (docs/guide/explain.md).

    `kernel`, `cores` (computing cores) and `size` (bytes) choose among the points; without them TRIAD at the
    most cores and the largest message is told, and every point split. UsageError where the runs are of
    different machines, hold nothing to explain, or nothing of what is asked for.
    """
    runs = [item if isinstance(item, Run) else open(item) for item in (run, *more)]
    _one_machine(runs)
    _once(runs)
    observed = [item.observed() for item in runs]
    return explained(observed, runs[0].machine, kernel=kernel, n=cores, size=size)


def explanation_figures(explanation: Explanation) -> tuple[Figure, ...]:
    """What each side keeps, source by source, and the blue and red points, as figures."""
    return figures(explanation.shown, explanation.cases)


def save_explanation(explanation: Explanation, path: Path | str) -> Path:
    """Writes the figures as one .png or .svg."""
    drawn = explanation_figures(explanation)
    if not drawn:
        raise UsageError(
            "holds no point with a computation beside messages, so there is nothing to draw",
            field="run",
            value=", ".join(explanation.runs),
            hint="measure one: elbowroom run contrast",
        )
    where = f"{explanation.machine}{' (virtual)' if explanation.virtual else ''}"
    save_panels(drawn, Path(path), columns=COLUMNS, title=f"Where it comes from: {where}", shared=False)
    return Path(path)


def _one_machine(runs: list[Run]) -> None:
    """Refuses runs of machines that differ in name, cores, nodes or number of hosts."""
    first = runs[0].machine
    for run in runs[1:]:
        check_same(
            difference(run.machine, first, HARDWARE),
            message="is from another machine than the first run",
            field="run",
            value=str(run.path),
            hint="explain the runs of one machine together, others apart",
        )


def _once(runs: list[Run]) -> None:
    """Refuses a run that is named twice: its points would be counted twice."""
    paths: set[Path] = set()
    for run in runs:
        place = run.path.resolve()
        if place in paths:
            raise UsageError("is named twice", field="run", value=str(run.path), hint="name each run once")
        paths.add(place)
