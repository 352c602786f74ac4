"""All setups in which a job may run on a machine, and their loads."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import msgspec

from elbowroom.advise.collectives import WAY
from elbowroom.advise.job import AXES, Job, JobStep, Setup
from elbowroom.errors import UsageError
from elbowroom.models.curves import Shape
from elbowroom.models.load import Computing, Load, Messages
from elbowroom.quantities import format_size

MOST = 200_000
"""Maximum number of setups; comparing them takes half a minute."""


def setups(job: Job, shape: Shape) -> list[Setup]:
    """All setups of the job that fit the machine, the present one first.

    UsageError if the present one does not fit, a listed value does not exist on that machine, no other setup
    fits, or there are too many.
    """
    refuse(job.now, job.step, shape, "now.")
    axes = {axis: values(job, axis, shape) for axis in AXES}
    count = 1
    for choices in axes.values():
        count *= len(choices)
    if count > MOST:
        widest = max(axes, key=lambda axis: len(axes[axis]))
        raise UsageError(
            f"allows {count} setups, more than {MOST}",
            field="may",
            hint=f"list fewer values, first of {widest} (now {len(axes[widest])})",
        )
    possible = [setup for setup in _product(axes) if _measured(setup, job)]
    fitting = [setup for setup in possible if not misfit(setup, job.step, shape)]
    if len(fitting) < 2:
        refused = next((setup for setup in possible if misfit(setup, job.step, shape)), job.now)
        reason = misfit(refused, job.step, shape)
        raise UsageError(
            f"leaves nothing to choose: only the present setup fits {shape.name}"
            + (f" ({reason[1]})" if reason else ""),
            field="may",
            hint="let more values change",
        )
    return fitting


def _product(axes: dict[str, tuple[object, ...]]) -> Iterator[Setup]:
    for combination in itertools.product(*axes.values()):
        yield Setup(**dict(zip(axes, combination, strict=True)))  # type: ignore[arg-type]


def _measured(setup: Setup, job: Job) -> bool:
    """Whether the collective was measured in the setup's form and with its progress policy."""
    return job.collective is None or job.collective.find(setup.way) is not None


def values(job: Job, axis: str, shape: Shape) -> tuple[object, ...]:
    """The allowed values of an axis: the present one first, then the others in the order listed."""
    now = getattr(job.now, axis)
    allowed = getattr(job.may, axis)
    if allowed is None:
        return (now,)
    if allowed == "every" and axis in WAY:
        measured = () if job.collective is None else job.collective.measured
        allowed = tuple(getattr(one, axis) for one in measured)
    elif allowed == "every":
        allowed = tuple(_every(axis, shape))
    elif isinstance(allowed, str):
        allowed = (allowed,)
    else:
        for value in allowed:
            _exists(axis, value, shape)
    return tuple(dict.fromkeys((now, *allowed)))


def _every(axis: str, shape: Shape) -> range:
    most = shape.cores_first_socket
    return {
        "cores": range(most + 1),
        "cores_other": range(shape.cores_of(1) + 1),
        "comm_socket": range(shape.sockets),
    }.get(axis, range(shape.nodes))


def _exists(axis: str, value: object, shape: Shape) -> None:
    """Refuses a value that does not exist on that machine."""
    every = _every(axis, shape)
    counted = axis in ("cores", "cores_other", "comm_socket") or axis.endswith("node") or "node_" in axis
    if counted and value not in every:
        raise UsageError(
            f"does not exist on {shape.name}", field=f"may.{axis}", value=value, hint=f"give {_range(every)}"
        )


def _range(every: range) -> str:
    return f"{every[0]} to {every[-1]}" if len(every) > 1 else str(every[0])


def refuse(setup: Setup, step: JobStep, shape: Shape, prefix: str = "") -> None:
    """UsageError where the setup does not fit the machine."""
    problem = misfit(setup, step, shape)
    if problem is not None:
        axis, reason, hint = problem
        raise UsageError(reason, field=f"{prefix}{axis}", value=getattr(setup, axis), hint=hint)


def misfit(setup: Setup, step: JobStep, shape: Shape) -> tuple[str, str, str] | None:
    """An axis of the setup that does not fit the machine or the step, the reason and a hint; or None."""
    for axis in ("comp_node", "comp_node_other", "comm_node", "comm_socket"):
        value, every = getattr(setup, axis), _every(axis, shape)
        if value is not None and value not in every:
            what = "sockets" if axis == "comm_socket" else "NUMA nodes"
            return axis, f"{shape.name} has {len(every)} {what}, numbered from 0", f"give {_range(every)}"
    if setup.cores + setup.cores_other == 0:
        return "cores", "at least one computing core is needed", "give at least one"
    for socket, axis in enumerate(("cores", "cores_other")):
        most = shape.cores_of(socket)
        threads = _busy_cores(setup) if socket == comm_socket(setup, shape) else 0
        count = getattr(setup, axis)
        if count > most - threads:
            return axis, _too_many(most, threads, shape, socket), f"give at most {max(most - threads, 0)}"
    if setup.processes > setup.cores + setup.cores_other:
        return "processes", "each process needs a computing core", "give more computing cores, or fewer"
    if setup.communicating > shape.cores_first_socket:
        most = shape.cores_first_socket
        axis = "comm_threads" if setup.comm_threads > 1 else "processes"
        return axis, f"a socket of {shape.name} has {most} cores", f"give at most {most}"
    if setup.size is not None and setup.size > step.comm_bytes:
        most_bytes = format_size(int(step.comm_bytes))
        return (
            "size",
            f"is larger than all messages of a step together ({most_bytes})",
            f"give at most {most_bytes}",
        )
    return None


def _busy_cores(setup: Setup) -> int:
    """Cores that cannot compute: those that communicate at the same time, and that of the progress thread."""
    return (setup.communicating if setup.overlap else 0) + (setup.progress == "thread")


def _too_many(most: int, threads: int, shape: Shape, socket: int) -> str:
    which = "first" if socket == 0 else "second"
    taken = f", {threads} of them for communication" if threads else ""
    return f"{shape.name} has {most} cores on its {which} socket{taken}"


def comm_socket(setup: Setup, shape: Shape) -> int:
    """The socket whose cores communicate: the one named, else the last, as in measurements."""
    return shape.sockets - 1 if setup.comm_socket is None else setup.comm_socket


def computing_of(
    cores: int, cores_other: int, node: int, node_other: int | None, intensity: float
) -> tuple[Computing, ...]:
    """The groups of cores that compute, sockets without any left out."""
    groups = ((0, cores, node), (1, cores_other, node if node_other is None else node_other))
    return tuple(
        Computing(socket=socket, node=at, count=count, intensity=intensity)
        for socket, count, at in groups
        if count
    )


def load_of(setup: Setup, step: JobStep) -> Load:
    """The load that both sides of a setup are at once."""
    return Load(
        computing=computing_of(
            setup.cores, setup.cores_other, setup.comp_node, setup.comp_node_other, step.intensity
        ),
        messages=Messages(
            node=setup.comm_node, direction=step.direction, size=setup.size, threads=setup.communicating
        ),
    )


def reference_of(step: JobStep) -> Load | None:
    """The load of which T_M was measured; None where bytes are known."""
    measured = step.t_comp
    if measured is None:
        return None
    return Load(
        computing=computing_of(
            measured.cores,
            measured.cores_other,
            measured.comp_node,
            measured.comp_node_other,
            step.intensity,
        )
    )


def changed(setup: Setup, axis: str, other: Setup) -> Setup:
    """The setup with that axis as in the other one."""
    return msgspec.structs.replace(setup, **{axis: getattr(other, axis)})


def differing(setup: Setup, other: Setup) -> tuple[str, ...]:
    """The axes in which two setups differ."""
    return tuple(axis for axis in AXES if getattr(setup, axis) != getattr(other, axis))
