"""Predicted steps of an accelerator: a kernel and what is moved beside it, for every draw of the model.

A step computes for T_M alone and moves N bytes, T_N = N / rate alone. Together it takes T_tot of
models/overlap/law.py with L_M = 1 / kept and L_N = alone / together. A kernel that is planned without k SMs,
on which others copy, was not measured as a whole: it keeps what the plan keeps, times what copies keep of
idle SMs (the contrast of both tells what moving takes beyond holding).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from elbowroom.advise.gpu_job import GpuJob, GpuSetup, Way
from elbowroom.errors import UsageError
from elbowroom.models.gpu.case import DeviceCase
from elbowroom.models.gpu.load_file import COUNTS
from elbowroom.models.gpu.model import GpuDraws, GpuModel
from elbowroom.models.gpu.words import LINKS

Array = NDArray[np.float64]

MEGA = 1e6
"""B/s in a MB/s."""

CONTRAST = "the plan's and the copies' losses were measured apart, and are taken together"


class GpuSteps(msgspec.Struct, frozen=True, kw_only=True):
    """Of S setups, (1 + D, S): totals (s), what both sides keep, MB/s of the mover alone; flags of each."""

    setups: tuple[GpuSetup, ...]
    totals: Array
    kept: Array
    mover_kept: Array
    mover_alone: Array
    flags: tuple[tuple[str, ...], ...]

    def place(self, setup: GpuSetup) -> int:
        """Where a setup is among them."""
        return self.setups.index(setup)


def setups_of(model: GpuModel, job: GpuJob) -> tuple[list[GpuSetup], dict[str, int]]:
    """Every setup that the job may choose, the present one with them, and how many cannot be answered, by
    reason.
    """
    left_out: Counter[str] = Counter()
    chosen: list[GpuSetup] = []
    for way in job.ways:
        for setup in _ways(model, job, way):
            try:
                for case in cases_of(job, setup):
                    model.resolved(case)
            except UsageError as error:
                left_out[f"{setup.way}: {error.sentence()}"] += 1
            else:
                chosen.append(setup)
    if job.now is not None:
        for case in cases_of(job, job.now):
            model.resolved(case)
        if job.now not in chosen:
            chosen.insert(0, job.now)
    return chosen, dict(left_out)


def _ways(model: GpuModel, job: GpuJob, way: Way) -> list[GpuSetup]:
    if way == "copy":
        known = model.nodes(job.moves) if job.moves in LINKS else ()
        # Copies from a buffer on no known node are no choice beside those from known ones.
        nodes = [node for node in known if node >= 0] or [-1]
        return [GpuSetup(way="copy", node=node) for node in nodes]
    if job.moves in ("h2d", "both"):
        return []
    counts = job.sms or tuple(count for count in COUNTS if count < model.part.sms)
    return [GpuSetup(way=way, sms=count) for count in counts]


def cases_of(job: GpuJob, setup: GpuSetup) -> tuple[DeviceCase, ...]:
    """The cases whose product is what the victim keeps; of the last one the mover's rates count.

    UsageError for SMs that move data to the device, which no case has.
    """
    common = {"victim": job.victim, "shape": job.shape}
    if setup.way == "copy":
        return (_case(**common, mover="copy", direction=job.moves, node=setup.node),)
    if job.moves in ("h2d", "both"):
        raise UsageError(
            "is not what SMs were measured with", field="gpu.moves", value=job.moves, hint="give d2h or d2d"
        )
    where = "host" if job.moves == "d2h" else "hbm"
    copy = _case(**common, mover="sm_copy", direction=where, sms=setup.sms, pace_mb_s=job.pace_mb_s)
    if setup.way == "sm_copy":
        return (copy,)
    plan = _case(**common, mover="sm_target", sms=setup.sms)
    return (plan, _case(**common, mover="sm_idle", sms=setup.sms), copy)


def _case(**fields: object) -> DeviceCase:
    return msgspec.convert(fields, DeviceCase)


def steps(model: GpuModel, job: GpuJob, setups: Sequence[GpuSetup]) -> GpuSteps:
    """The steps of these setups, which all can be answered."""
    each = [cases_of(job, setup) for setup in setups]
    cases = list(dict.fromkeys(case for group in each for case in group))
    draws = model.draws(cases)
    flags = dict(zip(cases, (item.flags for item in model.predict(cases)), strict=True))
    kept = np.stack([_kept(draws, [cases.index(case) for case in group]) for group in each], axis=1)
    movers = [cases.index(group[-1]) for group in each]
    alone, together = draws.mover_alone[:, movers], draws.mover_together[:, movers]
    mover_kept = together / np.maximum(alone, 1e-9)
    t_comm = job.bytes / (np.maximum(alone, 1e-9) * MEGA)
    return GpuSteps(
        setups=tuple(setups),
        totals=overlapped(
            np.full_like(t_comm, job.seconds), t_comm, 1 / kept, 1 / np.maximum(mover_kept, 1e-9)
        ),
        kept=kept,
        mover_kept=mover_kept,
        mover_alone=alone,
        flags=tuple(
            tuple(dict.fromkeys(flag for case in group for flag in flags[case]))
            + ((CONTRAST,) if len(group) > 1 else ())
            for group in each
        ),
    )


def _kept(draws: GpuDraws, places: Sequence[int]) -> Array:
    if len(places) == 1:
        return draws.kept[:, places[0]]
    plan, idle, copy = (draws.kept[:, place] for place in places)
    both: Array = plan * np.minimum(copy / idle, 1.0)
    return both


def overlapped(t_comp: Array, t_comm: Array, l_comp: Array, l_comm: Array) -> Array:
    """T_tot of models/overlap/law.py, of arrays."""
    comp, comm = l_comp * t_comp, l_comm * t_comm
    total: Array = np.minimum(comp, comm) + np.maximum((comp - comm) / l_comp, (comm - comp) / l_comm)
    return total
