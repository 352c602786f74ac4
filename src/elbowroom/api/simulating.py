"""Simulating a node line by line, as Python sees it (docs/simulate.md)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from elbowroom.errors import UsageError

if TYPE_CHECKING:
    from elbowroom.draw.figure import Figure
    from elbowroom.model.load import Direction, Load
    from elbowroom.model.simulated import Curve, Finding
    from elbowroom.predict.simulated_questions import Answer
    from elbowroom.virtual.request_node import Node
    from elbowroom.virtual.requests import Pattern, Requests


class Sweep(NamedTuple):
    """A parameter whose values the questions vary: factors on the node's own, kernel, and whether all data is
    on the other socket's node instead of on the first.
    """

    parameter: str
    factors: tuple[float, ...]
    kernel: Pattern = "nt"
    far: bool = False


SWEEPS = (
    Sweep("nic_write_credits", (0.5, 0.75, 1.0, 1.5, 2.0, 4.0)),
    Sweep("line_fill_buffers", (0.6, 1.0, 1.5, 2.0, 3.0, 5.0)),
    Sweep("nic_write_credits", (0.5, 0.75, 1.0, 1.5, 2.0, 4.0, 8.0), far=True),
    Sweep("line_fill_buffers", (0.6, 1.0, 1.5, 2.0, 3.0, 5.0), far=True),
    Sweep("write_batch", (1 / 16, 1 / 4, 1 / 2, 1.0, 2.0), kernel="read"),
    Sweep("write_queue", (1 / 3, 1.0, 2.0, 4.0), kernel="read"),
    Sweep("link_credits", (1 / 16, 1 / 8, 1 / 4, 1.0), far=True),
)


class Swept(NamedTuple):
    """What one value of a sweep's parameter shows."""

    sweep: Sweep
    value: float
    curve: Curve
    finding: Finding


class Simulated(NamedTuple):
    """A node, and a curve over n for every message size, in order, with what it shows."""

    node: Node
    curves: tuple[Curve, ...]
    findings: tuple[Finding, ...]


class Questions(NamedTuple):
    """The four answers, what other values of some parameters would change, and the figures written."""

    node: Node
    answers: tuple[Answer, ...]
    swept: tuple[Swept, ...]
    files: tuple[Path, ...]


def simulated_node(machine: str, settings: Iterable[tuple[str, str]] = ()) -> Node:
    """The node behind `machine:requests` (a name or a file), with other values of some parameters."""
    from elbowroom.launch.simulator import simulate as run
    from elbowroom.launch.virtual import load
    from elbowroom.virtual.request_node import changed
    from elbowroom.virtual.request_scaling import scaled

    return changed(scaled(load(machine).definition, run), settings)


def simulate(
    machine: str,
    *,
    cores: Sequence[int] | None = None,
    comp_node: int = 0,
    comm_node: int = 0,
    kernel: Pattern = "nt",
    intensity: float = 0.0,
    direction: Direction = "receive",
    sizes: Sequence[int | None] = (None,),
    comm_threads: int = 1,
    far_thread: bool = False,
    copy: float | None = None,
    settings: Iterable[tuple[str, str]] = (),
    seed: int = 1,
) -> Simulated:
    """Both sides alone and together for each number of `cores` of the first socket (default: all) and each
    message size in bytes (None: messages without end).

    `intensity` in flop/B, `copy` the MB/s that an accelerator would write to `comp_node` alone, `far_thread`:
    the communication threads are not on the NIC's socket. UsageError for what the machine has not;
    MachineError when the simulator cannot be built.
    """
    from elbowroom.launch.simulator import simulate as run
    from elbowroom.model.simulated import finding
    from elbowroom.virtual.request_curves import curve
    from elbowroom.virtual.requests import Requests

    node = simulated_node(machine, settings)
    counts = _counts(node, cores)
    loads = [_load(comp_node, comm_node, intensity, direction, size, comm_threads, copy) for size in sizes]
    for load in loads:
        _check(node, load)
    truth = Requests(node, run, seed=seed)
    curves = tuple(curve(truth, load, counts, pattern=kernel, far=far_thread) for load in loads)
    return Simulated(node, curves, tuple(finding(one) for one in curves))


def _counts(node: Node, cores: Sequence[int] | None) -> tuple[int, ...]:
    most = node.shape.cores_first_socket
    if cores is None:
        return tuple(range(1, most + 1))
    if not cores:
        raise UsageError("names no number of cores", field="cores", mend=f"1 to {most}")
    for n in cores:
        if not 1 <= n <= most:
            raise UsageError(
                f"{node.shape.name} has not that many cores on its first socket",
                field="cores",
                value=n,
                mend=f"1 to {most}",
            )
    return tuple(sorted(set(cores)))


_SAID = {
    # What is wrong with a load, by the names that it was told by here.
    "computing.node": "comp_node",
    "computing.intensity": "intensity",
    "messages.node": "comm_node",
    "messages.size": "sizes",
    "messages.threads": "comm_threads",
    "copies.demand": "copy",
}


def _check(node: Node, load: Load) -> None:
    from elbowroom.model.load import check_load
    from elbowroom.virtual.requests import Moment, experiment

    try:
        check_load(node.shape, load)
        experiment(node, Moment(load.computing, copies=load.copies), 1)
    except UsageError as error:
        field = _SAID.get(error.field, error.field)
        raise UsageError(error.message, field=field, value=error.value, mend=error.mend) from error


def _load(
    comp_node: int,
    comm_node: int,
    intensity: float,
    direction: Direction,
    size: int | None,
    threads: int,
    copy: float | None,
) -> Load:
    """With one core; the curve has its own numbers of them."""
    from elbowroom.model.load import Computing, Copy, Load, Messages

    return Load(
        computing=(Computing(socket=0, node=comp_node, count=1, intensity=intensity),),
        messages=Messages(node=comm_node, direction=direction, size=size, threads=threads),
        copies=() if copy is None else (Copy(node=comp_node, demand=copy),),
    )


def simulate_questions(
    machine: str, folder: Path | str | None = None, *, settings: Iterable[tuple[str, str]] = (), seed: int = 1
) -> Questions:
    """Who loses first, from which n on, is a minimum kept, controller or link: answered for memset and
    messages that arrive, in four placements, with figures in `folder`, and for other values of what decides
    it.
    """
    from elbowroom.launch.simulator import simulate as run
    from elbowroom.predict.simulated_questions import answers
    from elbowroom.virtual.requests import Requests

    node = simulated_node(machine, settings)
    truth = Requests(node, run, seed=seed)
    counts = _counts(node, None)
    curves = tuple(_placed(truth, place, counts) for place in _placements(node))
    swept = tuple(one for sweep in SWEEPS for one in _swept(node, sweep, seed))
    files = () if folder is None else _drawn(Path(folder), node, curves, swept)
    return Questions(node, answers(curves), swept, files)


def _placements(node: Node) -> tuple[tuple[int, int], ...]:
    """Both on one node, near and far, then apart."""
    if node.core_rate_remote is None:
        return ((0, 0),)
    far = node.shape.numa_per_socket
    return ((0, 0), (far, far), (0, far), (far, 0))


def _placed(truth: Requests, place: tuple[int, int], counts: Sequence[int], kernel: Pattern = "nt") -> Curve:
    from elbowroom.virtual.request_curves import curve

    return curve(truth, _load(*place, 0.0, "receive", None, 1, None), counts, pattern=kernel)


def _swept(node: Node, sweep: Sweep, seed: int) -> list[Swept]:
    """One parameter at a time, with a dozen numbers of cores; no sweep to the other socket where there is
    none.
    """
    from elbowroom.model.simulated import finding
    from elbowroom.virtual.request_node import changed

    if sweep.far and node.core_rate_remote is None:
        return []
    data, most = node.shape.numa_per_socket if sweep.far else 0, node.shape.cores_first_socket
    counts = sorted({max(1, round(most * k / 12)) for k in range(1, 13)})
    found = []
    for factor in sweep.factors:
        value = max(1, round(factor * getattr(node, sweep.parameter)))
        truth = _truth(changed(node, [(sweep.parameter, str(value))]), seed)
        curve = _placed(truth, (data, data), counts, sweep.kernel)
        found.append(Swept(sweep, float(value), curve, finding(curve)))
    return found


def _truth(node: Node, seed: int) -> Requests:
    from elbowroom.launch.simulator import simulate as run
    from elbowroom.virtual.requests import Requests

    return Requests(node, run, seed=seed)


def _drawn(folder: Path, node: Node, curves: Sequence[Curve], swept: Sequence[Swept]) -> tuple[Path, ...]:
    """One figure for each question, and one of all that was varied."""
    from elbowroom.draw.files import save, save_panels
    from elbowroom.predict import simulated_figures as figures

    name = node.shape.name
    _folder(folder)
    panels = {
        "who-loses-first": ([figures.kept(name, one) for one in curves], "who loses first"),
        "from-which-n": ([figures.bandwidths(name, one) for one in curves], "from which n on"),
        "controller-or-link": ([figures.stations(name, one) for one in curves], "controller or link"),
        "what-decides": (
            [_varied(sweep, [one for one in swept if one.sweep is sweep]) for sweep in SWEEPS if swept],
            "what decides (kept with all cores)",
        ),
    }
    written = []
    for file, (drawn, title) in panels.items():
        path = folder / f"{file}.png"
        save_panels([one for one in drawn if one.series], path, columns=2, title=f"{name}: {title}")
        written.append(path)
    save(figures.minimum(name, curves), folder / "minimum-kept.png")
    return (*written, folder / "minimum-kept.png")


def _varied(sweep: Sweep, swept: Sequence[Swept]) -> Figure:
    from elbowroom.predict.simulated_figures import varied

    where = "far data" if sweep.far else "near data"
    points = [(one.value, one.curve.rows[-1].comp_kept, one.curve.rows[-1].comm_kept) for one in swept]
    return varied(f"{sweep.parameter}, {sweep.kernel}, {where}", sweep.parameter, points)


def _folder(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"cannot be made ({error.strerror})", field="out", value=str(path), mend="name another folder"
        ) from error


def simulated_figure(found: Simulated) -> Figure:
    """Bandwidths of the first curve over n."""
    from elbowroom.predict.simulated_figures import bandwidths

    return bandwidths(found.node.shape.name, found.curves[0])
