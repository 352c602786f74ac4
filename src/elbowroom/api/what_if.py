"""What if a profiled program ran with fewer cores, with its data near the NIC, or without overlap?"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from elbowroom.advise.job import JobStep, Setup
from elbowroom.advise.setups import load_of, refuse
from elbowroom.api.machine_models import check_machine, earlier_model
from elbowroom.api.models import Model, load_model
from elbowroom.api.network_calibration import load_curve
from elbowroom.errors import UsageError
from elbowroom.models.curves import STREAMS
from elbowroom.models.predict import load_draws
from elbowroom.models.prediction import NORMAL_90
from elbowroom.profile.analysis import Analysis, analyse
from elbowroom.profile.profile import read_profile, with_ranks_apart
from elbowroom.profile.steps import find_steps
from elbowroom.profile.what_if import Bandwidths, NodeTimes, changed_time, node_times
from elbowroom.stats.interval import Interval

Floats = npt.NDArray[np.float64]


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One change: the program's time with it, s, and relative to now (-0.1: 10 % shorter), with 90 %
    intervals of the model; None, with the `reason`, where that cannot be answered.
    """

    name: str
    then_s: Interval | None = None
    change: Interval | None = None
    reason: str = ""


class WhatIf(msgspec.Struct, frozen=True, kw_only=True):
    """What `profile what-if --json` prints: the time now of all `steps` (0: none were found, and it is that
    of the program), and of the node that decides, `node`, the mean rank's times of computation, messages and
    both at once, s.
    """

    schema: str = "elbowroom/what-if"
    version: int = 1
    profile: str
    model: str
    steps: int
    now_s: float
    node: str
    computation_s: float
    network_s: float
    both_s: float
    changes: tuple[Change, ...]


class _Case(NamedTuple):
    """A program on one node of a machine."""

    model: Model
    times: NodeTimes
    now: Setup
    size: int | None

    def bandwidths(self, setup: Setup) -> tuple[Bandwidths, Floats]:
        """Of a setup: for each draw, and (4,) standard deviations of what the model cannot follow."""
        load = load_of(msgspec.structs.replace(setup, size=self.size), JobStep(comm_bytes=1.0))
        draws = load_draws(self.model.document, [load])
        streams = {stream: getattr(draws, stream)[:, 0] for stream in STREAMS}
        discrepancy = np.asarray(draws.discrepancy, dtype=float).reshape(4, -1)[:, 0]
        return Bandwidths(**streams), discrepancy


def predict_changes(
    directory: Path | str,
    model: Model | Path | str | None = None,
    *,
    fewer_cores: int = 1,
    cores: int | None = None,
    comp_node: int = 0,
    comm_node: int = 0,
    curve: Path | str | None = None,
) -> WhatIf:
    """How the time of a profiled program changes with `fewer_cores` computing cores less, with its messages'
    data near the NIC, and without overlap; each by itself.

    `cores`, `comp_node`, `comm_node`: as it ran (default: a core for each rank of a node). `model`: of that
    machine, default the newest in runs/. UsageError for a model of another machine, or cores that it lacks.
    """
    profile = read_profile(Path(directory))
    nic = None if curve is None else load_curve(curve)
    inside = profile.nodes == 1
    analysis = analyse(with_ranks_apart(profile) if inside else profile, nic)
    hosts = tuple(dict.fromkeys(rank.host for rank in profile.ranks))
    size = _usual_size(analysis)
    loaded = _model(hosts, model, size, str(directory))
    steps = find_steps(analysis, of_all_ranks=inside).steps
    times = node_times(analysis, *((steps.edges[0], steps.edges[-1]) if steps else ()))
    node = max(range(len(times)), key=lambda at: times[at].computation + times[at].network)
    ranks = profile.size if inside else int((profile.nodes_of == node).sum())
    now = _present(ranks if cores is None else cores, comp_node, comm_node, loaded)
    known = size if loaded.document.message_size is not None else None
    case = _Case(loaded, times[node], now, known)
    return WhatIf(
        profile=str(directory),
        model=loaded.machine.name if loaded.path is None else str(loaded.path),
        steps=0 if steps is None else steps.count,
        now_s=times[node].total,
        node=analysis.profile.names[node],
        computation_s=times[node].computation,
        network_s=times[node].network,
        both_s=times[node].both,
        changes=(*_fewer(case, fewer_cores), _near(case), _without_overlap(case)),
    )


def _usual_size(analysis: Analysis) -> int:
    """The message size with most bytes."""
    sent = analysis.network.bytes[analysis.network.out]
    if not len(sent) or sent.sum() == 0:
        raise UsageError(
            "has no communication",
            field="profile",
            value=analysis.profile.folder,
            hint="what changes for such a program does not depend on messages",
        )
    sizes, counts = np.unique(sent, return_counts=True)
    return int(sizes[np.argmax(sizes * counts)])


def _model(hosts: tuple[str, ...], given: Model | Path | str | None, size: int, profile: str) -> Model:
    if given is not None:
        model = load_model(given)
        check_machine(model, hosts, given)
        return model
    earlier = earlier_model(hosts, size)
    if earlier is None:
        raise UsageError(
            "no model of the profile's machine is in runs/",
            field="model",
            hint=f"measure one: elbowroom diagnose --profile {profile}; or name one: --model M.json",
        )
    return earlier


def _present(cores: int, comp_node: int, comm_node: int, model: Model) -> Setup:
    """How the program ran: cores that the first socket lacks are on the second one."""
    shape = model.machine
    first = min(cores, shape.cores_first_socket)
    now = Setup(
        cores=first, cores_other=cores - first, comp_node=comp_node, comm_node=comm_node, overlap=False
    )  # fmt: skip
    refuse(now, JobStep(comm_bytes=1.0), shape)
    return now


def _fewer(case: _Case, fewer: int) -> tuple[Change, ...]:
    """With fewer computing cores: bound by memory as the model's kernel is, and by the cores."""
    cores = case.now.cores + case.now.cores_other
    name = f"{fewer} computing core{'s' if fewer > 1 else ''} fewer"
    if fewer < 1 or fewer >= cores:
        raise UsageError(
            f"is not possible: {cores} core{'s' if cores > 1 else ''} compute{'' if cores > 1 else 's'}",
            field="fewer_cores",
            value=fewer,
            hint=f"give 1 to {cores - 1}, or say how many compute: --cores N"
            if cores > 1
            else "say how many cores compute: --cores N",
        )
    other = max(case.now.cores_other - fewer, 0)
    then = msgspec.structs.replace(case.now, cores=cores - fewer - other, cores_other=other)
    by_memory = _changed(case, f"{name}, bound by memory", then)
    now, discrepancy = case.bandwidths(case.now)
    # What the cores bound does not depend on messages, and slows none.
    alone = msgspec.structs.replace(now, comp_together=now.comp_alone, comm_together=now.comm_alone)
    share = (cores - fewer) / cores
    fewer_alone = msgspec.structs.replace(
        alone, comp_alone=share * alone.comp_alone, comp_together=share * alone.comp_alone
    )
    return by_memory, _change(case, f"{name}, bound by the cores", alone, fewer_alone, 0 * discrepancy)


def _near(case: _Case) -> Change:
    name, nic = "messages' data near the NIC", case.model.machine.nic_node
    if nic is None:
        return Change(name=name, reason="the model does not know the NUMA node of the NIC")
    if nic == case.now.comm_node:
        return Change(name=name, reason=f"it is: node {nic}")
    return _changed(case, f"{name} (node {nic})", msgspec.structs.replace(case.now, comm_node=nic))


def _without_overlap(case: _Case) -> Change:
    now, discrepancy = case.bandwidths(case.now)
    return _change(case, "without overlap", now, now, discrepancy, overlaps=False)


def _changed(case: _Case, name: str, setup: Setup) -> Change:
    """With another setup; n/a where the model has no answer for it."""
    try:
        (now, own), (then, other) = case.bandwidths(case.now), case.bandwidths(setup)
    except UsageError as error:
        return Change(name=name, reason=error.message)
    return _change(case, name, now, then, np.hypot(own, other))


def _change(
    case: _Case, name: str, now: Bandwidths, then: Bandwidths, discrepancy: Floats, *, overlaps: bool = True
) -> Change:
    """Row 0 of the draws is the best fit; what the model cannot follow is an error of each bandwidth of
    `then`.
    """
    logs = np.log(changed_time(case.times, now, then, overlaps=overlaps))
    variance = float(np.var(logs[1:])) if len(logs) > 1 else 0.0
    for stream, error in zip(STREAMS, discrepancy, strict=True):
        other = msgspec.structs.replace(then, **{stream: getattr(then, stream) * np.exp(error)})
        shifted = np.log(changed_time(case.times, now, other, overlaps=overlaps))
        variance += float(shifted[0] - logs[0]) ** 2
    half = NORMAL_90 * np.sqrt(variance)
    low, value, high = (float(np.exp(logs[0] + sign * half)) for sign in (-1, 0, 1))
    total = case.times.total
    return Change(
        name=name,
        then_s=Interval(value=value, low=low, high=high),
        change=Interval(value=value / total - 1, low=low / total - 1, high=high / total - 1),
    )
