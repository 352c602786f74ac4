"""A machine of the thesis as a document: appendix E's parameters, with intervals."""

from __future__ import annotations

import math

from elbowroom.models import published
from elbowroom.models.document import Calibration, Document, Models
from elbowroom.models.prediction import NORMAL_90
from elbowroom.models.threshold.part import ThresholdPart
from elbowroom.version import __version__

FROM_TABLE = "published mean error"


def of_published(name: str) -> Document:
    """A machine of the thesis as a document: appendix E's parameters, intervals from Table 6.1.

    Errors are taken as normal, so that a mean error e means a half-width of 1.645 sqrt(pi / 2) e.
    """
    machine = published.load(name)
    model = machine.model

    def width(percent: float) -> float:
        return NORMAL_90 * math.sqrt(math.pi / 2) * percent / 100

    comp, comm = machine.errors.comp, machine.errors.comm
    sample, other = (
        (width(on_comp), width(on_comm), width(on_comp), width(on_comm))
        for on_comp, on_comm in ((comp.samples, comm.samples), (comp.non_samples, comm.non_samples))
    )
    nodes = range(machine.shape.nodes)
    calibration = Calibration(
        run=f"thesis of P. Swartvagher (2022), Table {machine.table}",
        plan="",
        origin="published",
        kernel="memset_nt",
        size=64_000_000,
        runs=0,
        n_low=1,
        n_high=machine.cores_first_socket,
        placements=tuple((i, j) for i in nodes for j in nodes),
    )
    part = ThresholdPart(
        local=model.local,
        remote=model.remote,
        bands={"local": sample, "remote": sample, "other": other},
        bands_from=FROM_TABLE,
    )
    corrections = [
        f"{item.placement} {item.parameter} is {item.used:g}, not {item.printed:g} as printed: {item.reason}"
        for item in machine.corrections
    ]
    return Document(
        elbowroom=__version__,
        created="",
        machine=machine.shape,
        calibration=calibration,
        models=Models(threshold=part),
        validity=(calibration.benchmark, *machine.notes, *corrections),
    )
