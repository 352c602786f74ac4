"""Overlapped steps: from times and loss ratios, from a table of measured steps, or from a model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from elbowroom.draw.files import save
from elbowroom.models.overlap.figures import over_time, plane
from elbowroom.models.overlap.fluid import PredictedStep as PredictedStep
from elbowroom.models.overlap.fluid import predicted_step
from elbowroom.models.overlap.law import RIVALS as RIVALS
from elbowroom.models.overlap.law import AcceleratedNode as AcceleratedNode
from elbowroom.models.overlap.law import OverlappedStep as OverlappedStep
from elbowroom.models.overlap.law import Trial as Trial
from elbowroom.models.overlap.law import WorkSplit as WorkSplit
from elbowroom.models.overlap.law import deviations as deviations
from elbowroom.models.overlap.law import worth as worth
from elbowroom.store.steps import read_steps
from elbowroom.verbs.model_file import load_model

if TYPE_CHECKING:
    from elbowroom.verbs.model_file import Model


FigureName = Literal["plane", "time"]


def overlap(*, t_comp: float, t_comm: float, l_comp: float, l_comm: float) -> OverlappedStep:
    """A step that computes for `t_comp` and communicates for `t_comm`, each alone, in any one unit of time.

    `l_comp`, `l_comm`: bandwidth alone divided by bandwidth together. Raises UsageError for times below 0 and
    ratios below 1. See `total`, `gain`, `naive_max`, `naive_sum` of what is returned.
    """
    return OverlappedStep(t_comp=t_comp, t_comm=t_comm, l_comp=l_comp, l_comm=l_comm)


def best_split(
    *, work: float, p_comp: float, p_acc: float, t_comm: float, l_comp: float, l_comm: float
) -> WorkSplit:
    """How much of a step's `work` accelerators should do (`w`), and how long the step then takes (`total`).

    `p_comp`, `p_acc`: work per unit of time of the CPU and of all accelerators. Raises UsageError unless work
    and performances are positive, and as `overlap` does.
    """
    node = AcceleratedNode(work=work, p_comp=p_comp, p_acc=p_acc, t_comm=t_comm, l_comp=l_comp, l_comm=l_comm)
    return node.best_split()


def overlap_predicted(
    model: Model | Path | str,
    *,
    cores: int,
    comp_node: int,
    comm_node: int,
    comp_bytes: float,
    comm_bytes: float,
    cores_other: int = 0,
    name: str | None = None,
    faithful: bool = False,
) -> PredictedStep:
    """A step from what a model (M.json, or a published machine) predicts: `cores` of the first socket and
    `cores_other` of the second move `comp_bytes` of data on `comp_node`, messages of `comm_bytes` in all
    arrive in `comm_node`. Times are in s. Raises UsageError as `predict` does, and for bytes below 0.
    """
    prediction = load_model(model).predict(
        cores, comp_node, comm_node, n_other=cores_other, model=name, faithful=faithful
    )
    return predicted_step(prediction, comp_bytes, comm_bytes)


def overlap_table(
    source: str | Path, *, l_comp: float | None = None, l_comm: float | None = None
) -> list[Trial]:
    """The steps of a CSV file (columns: store/steps.py) or of a published table (`langguth2018`)."""
    return read_steps(str(source), l_comp, l_comm)


def save_overlap_figure(
    steps: Sequence[tuple[str, OverlappedStep]],
    path: Path | str,
    *,
    figure: FigureName = "plane",
    unit: str = "",
) -> Path:
    """Writes a PNG or SVG: the `plane` of times of all steps, or performance over `time` of the first one."""
    target = Path(path)
    save(plane(steps, unit) if figure == "plane" else over_time(steps[0][1], unit), target)
    return target
