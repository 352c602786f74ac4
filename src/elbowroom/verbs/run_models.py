"""Models from runs: what several runs measured, pooled, and all models fitted to that."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from elbowroom.errors import UsageError
from elbowroom.files import disk_error
from elbowroom.heartbeat import Wait
from elbowroom.machine.identity import STRICT_SHAPE, check_same, difference
from elbowroom.models import fit as fitting
from elbowroom.models.base import Provenance
from elbowroom.models.copy_rows import copy_rows
from elbowroom.models.gpu.samples import AcceleratorRuns, accelerator_runs
from elbowroom.models.run_data import collect, layout_of
from elbowroom.verbs.model_file import Model
from elbowroom.verbs.run_folder import Run

if TYPE_CHECKING:
    from elbowroom.models.document import Origin
    from elbowroom.models.load import LoadRow
    from elbowroom.models.run_data import FitData
    from elbowroom.results.result import PointResult
    from elbowroom.results.stores import StoreFactor


IMPORTED = "imported"
"""The launcher of runs that were made of curves."""


def fit_runs(
    sources: Sequence[Run],
    *,
    kernel: str | None = None,
    size: int | None = None,
    sms: int | None = None,
    computing: Callable[[FitData], Sequence[LoadRow]] | None = None,
    store_factor: StoreFactor | None = None,
    least: int = 1,
) -> Model:
    """Every model that these runs of one machine allow, which must have `least` points. `computing`: more
    measured loads; `sms`: multiprocessors of the accelerator, where runs of one do not say it;
    `store_factor`: bytes on the memory bus for a byte of a plain store, if it was measured apart.

    UsageError where none can be fitted, or the runs are of different machines.
    """
    accelerator = accelerator_runs(
        [(item.points(), item.manifest.hello.get("gpu") or {}) for item in sources], sms
    )
    created = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    try:
        collected = pooled(sources, kernel, size, store_factor.measured if store_factor else msgspec.UNSET)
    except UsageError as error:
        if accelerator is None or kernel is not None or size is not None:
            raise
        layout = layout_of(sources[0].machine)
        source = _provenance(sources, layout.nodes, accelerator)
        gpu = fitting.accelerator_part(source)
        reason = error.sentence()
        document = fitting.accelerator_document(gpu, layout.shape, source, reason, created=created)
    else:
        if computing is not None:
            more = (*collected.loads, *computing(collected))
            collected = msgspec.structs.replace(collected, loads=more)
        if accelerator is None and len(collected.curves.rows) + len(collected.loads) < least:
            raise UsageError(
                "has one measured point, which determines no model",
                field="run",
                value=str(sources[0].path),
                hint="measure more numbers of cores: elbowroom run model (on a machine with more cores)",
            )
        source = _provenance(sources, collected.layout.nodes, accelerator, collected)
        with Wait("fitting the models"):
            document = fitting.fit(collected.curves, source, created=created)
        if store_factor is not None:
            known = (*document.validity, store_factor.sentence)
            document = msgspec.structs.replace(document, validity=known)
    return Model(document)


def _provenance(
    sources: Sequence[Run],
    nodes: tuple[int, ...],
    accelerator: AcceleratorRuns | None,
    collected: FitData | None = None,
) -> Provenance:
    """Where the data of these runs comes from."""
    source = Provenance(
        run=str(sources[0].path),
        plan=", ".join(str(source.manifest.plan.get("name", "")) for source in sources),
        origin=_origin(sources[0]),
        nodes=nodes,
        doubts=tuple(reason for source in sources for reason in source.verdict.reasons),
        with_runs=tuple(str(source.path) for source in sources[1:]),
        accelerator=accelerator,
    )
    if collected is None:
        return source
    return msgspec.structs.replace(
        source,
        left_out=collected.unused if collected.loads else collected.left_out,
        sizes=collected.sizes,
        loads=collected.loads,
        intensity=collected.intensity,
        pattern=collected.pattern,
        store_factor=collected.store_factor,
    )


def pooled(
    runs: Sequence[Run], kernel: str | None, size: int | None, store_factor: float | msgspec.UnsetType
) -> FitData:
    """The points of several runs as if one had measured them; UsageError where no model can be fitted to
    them.
    """
    if not runs:
        raise UsageError("none is given", field="run", hint="name at least one run folder")
    shape = layout_of(runs[0].machine).shape
    points: list[PointResult] = []
    cores: dict[str, tuple[int, ...]] = {}
    for number, run in enumerate(runs):
        check_same(
            difference(layout_of(run.machine).shape, shape, STRICT_SHAPE),
            message="is from another machine than the first run",
            field="run",
            value=str(run.path),
            hint="fit the runs of one machine together, others apart",
        )
        # Points of several runs may have the same id, which must stay that of one point.
        before = f"{run.path.name}/" if number else ""
        points += [msgspec.structs.replace(item, id=before + item.id) for item in run.points()]
        cores |= {before + point.id: point.comp_cores for point in run.manifest.points}
    collected = collect(
        points,
        cores,
        runs[0].machine,
        origin=str(runs[0].path),
        kernel=kernel,
        size=size,
        store_factor=store_factor,
    )
    assert collected.base is not None
    copies, left_out = copy_rows(points, cores, collected.base)
    return msgspec.structs.replace(
        collected, loads=(*collected.loads, *copies), unused={**collected.unused, **left_out}
    )


def default_path(run: Run) -> Path:
    """models/NAME.json in the run folder; the folder is made."""
    name = re.sub(r"[^\w.-]+", "-", run.machine.name).strip(".-") or "machine"
    folder = run.path / "models"
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise disk_error(error, folder, "out") from error
    return folder / f"{name}.json"


def _origin(run: Run) -> Origin:
    if run.machine.virtual:
        return "virtual"
    return "imported" if run.manifest.launcher == IMPORTED else "measured"
