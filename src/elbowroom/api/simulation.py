"""Simulation of a node (docs/guide/simulate.md) and of the clocks of a job (docs/reference/clock.md)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from elbowroom.draw.files import save, save_panels
from elbowroom.errors import UsageError
from elbowroom.files import make_folder, write_atomically
from elbowroom.launch import simulator
from elbowroom.launch.status import computing
from elbowroom.launch.virtual import load
from elbowroom.models.curves import Shape
from elbowroom.models.load import Computing, Copy, Load, Messages, check_load
from elbowroom.trace.simulated_clock_figures import simulated_clock_figures as simulated_clock_figures
from elbowroom.trace.simulated_clocks import SimulatedClocks as SimulatedClocks
from elbowroom.trace.sync_figures import sync_report
from elbowroom.virtual import simulated_figures as figures
from elbowroom.virtual.request_calibration import scaled
from elbowroom.virtual.request_node import PARAMETERS as PARAMETERS
from elbowroom.virtual.request_node import Parameter, changed
from elbowroom.virtual.request_node import SimulatedNode as SimulatedNode
from elbowroom.virtual.requests import Moment, Requests, curve, experiment
from elbowroom.virtual.simulated import Curve as Curve
from elbowroom.virtual.simulated import Latency as Latency
from elbowroom.virtual.simulated import LossOnset as LossOnset
from elbowroom.virtual.simulated import SimulatedRow as SimulatedRow
from elbowroom.virtual.simulated import answers, onset_of
from elbowroom.virtual.simulated import who as who
from elbowroom.virtual.simulated_figures import bandwidths, varied

if TYPE_CHECKING:
    from elbowroom.draw.figure import Figure
    from elbowroom.models.load import Direction
    from elbowroom.virtual.requests import Pattern
    from elbowroom.virtual.simulated import QuestionAnswer


class ParameterSweep(NamedTuple):
    """A parameter whose values the questions vary: factors on the node's own, kernel, and whether all data is
    on the other socket's node instead of on the first.
    """

    parameter: str
    factors: tuple[float, ...]
    kernel: Pattern = "nt"
    far: bool = False


SWEEPS = (
    ParameterSweep("nic_write_credits", (0.5, 0.75, 1.0, 1.5, 2.0, 4.0)),
    ParameterSweep("line_fill_buffers", (0.6, 1.0, 1.5, 2.0, 3.0, 5.0)),
    ParameterSweep("nic_write_credits", (0.5, 0.75, 1.0, 1.5, 2.0, 4.0, 8.0), far=True),
    ParameterSweep("line_fill_buffers", (0.6, 1.0, 1.5, 2.0, 3.0, 5.0), far=True),
    ParameterSweep("write_batch", (1 / 16, 1 / 4, 1 / 2, 1.0, 2.0), kernel="read"),
    ParameterSweep("write_queue", (1 / 3, 1.0, 2.0, 4.0), kernel="read"),
    ParameterSweep("link_credits", (1 / 16, 1 / 8, 1 / 4, 1.0), far=True),
)


class Swept(NamedTuple):
    """What one value of a sweep's parameter shows."""

    sweep: ParameterSweep
    value: float
    curve: Curve
    finding: LossOnset


class Simulated(NamedTuple):
    """A node, and a curve over n for every message size, in order, with what it shows."""

    node: SimulatedNode
    curves: tuple[Curve, ...]
    findings: tuple[LossOnset, ...]


class Questions(NamedTuple):
    """The four answers, what other values of some parameters would change, and the figures written."""

    node: SimulatedNode
    answers: tuple[QuestionAnswer, ...]
    swept: tuple[Swept, ...]
    files: tuple[Path, ...]


class CurveFinding(LossOnset, frozen=True, kw_only=True):
    """What a curve shows, and who loses `first`."""

    first: str


class ShownCurve(Curve, frozen=True, kw_only=True):
    """A curve, and what it shows."""

    finding: CurveFinding


class SimulationDocument(msgspec.Struct, frozen=True, kw_only=True):
    """What `simulate --json` prints."""

    schema: str = "elbowroom/simulate"
    version: int = 1
    virtual: bool = True
    node: SimulatedNode
    curves: tuple[ShownCurve, ...]


class NodeParameter(Parameter, frozen=True, kw_only=True):
    """A parameter, and its value of a node; None: not known."""

    value: float | str | None


class NodeDocument(msgspec.Struct, frozen=True, kw_only=True):
    """What `simulate --parameters --json` prints."""

    schema: str = "elbowroom/simulated-node"
    version: int = 1
    virtual: bool = True
    machine: Shape
    parameters: tuple[NodeParameter, ...]


class AnswerDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A question, its answer in sentences, and the name of the figure that shows it."""

    question: str
    sentences: tuple[str, ...]
    figure: str


class SweptDocument(msgspec.Struct, frozen=True, kw_only=True):
    """What a node with another value of a parameter keeps with all cores, and what its curve shows."""

    parameter: str
    factors: tuple[float, ...]
    kernel: str
    far: bool
    value: float
    comp_kept: float | None
    comm_kept: float | None
    finding: CurveFinding


class QuestionsDocument(msgspec.Struct, frozen=True, kw_only=True):
    """What `simulate --questions --json` prints."""

    schema: str = "elbowroom/simulated-questions"
    version: int = 1
    virtual: bool = True
    node: SimulatedNode
    answers: tuple[AnswerDocument, ...]
    swept: tuple[SweptDocument, ...]
    files: tuple[str, ...]


class ClocksDocument(SimulatedClocks, frozen=True, kw_only=True):
    """What `trace simulate-clocks --json` prints."""

    schema: str = "elbowroom/simulated-clocks"
    version: int = 1
    virtual: bool = True


def simulation_document(simulated: Simulated) -> SimulationDocument:
    """Simulated curves as one document."""
    curves = (
        ShownCurve(**msgspec.structs.asdict(curve), finding=_finding(finding))
        for curve, finding in zip(simulated.curves, simulated.findings, strict=True)
    )
    return SimulationDocument(node=simulated.node, curves=tuple(curves))


def node_document(node: SimulatedNode) -> NodeDocument:
    """A simulated node with the values of its parameters."""
    parameters = (
        NodeParameter(**msgspec.structs.asdict(item), value=getattr(node, item.name)) for item in PARAMETERS
    )
    return NodeDocument(machine=node.shape, parameters=tuple(parameters))


def questions_document(questions: Questions) -> QuestionsDocument:
    """The answers to the four questions as one document."""
    return QuestionsDocument(
        node=questions.node,
        answers=tuple(AnswerDocument(**answer._asdict()) for answer in questions.answers),
        swept=tuple(
            SweptDocument(
                **item.sweep._asdict(),
                value=item.value,
                comp_kept=item.curve.rows[-1].comp_kept,
                comm_kept=item.curve.rows[-1].comm_kept,
                finding=_finding(item.finding),
            )
            for item in questions.swept
        ),
        files=tuple(map(str, questions.files)),
    )


def clocks_document(clocks: SimulatedClocks) -> ClocksDocument:
    """Simulated clocks as one document."""
    return ClocksDocument(**msgspec.structs.asdict(clocks))


def _finding(onset: LossOnset) -> CurveFinding:
    return CurveFinding(first=onset.first, **msgspec.structs.asdict(onset))


def simulated_node(machine: str, settings: Iterable[tuple[str, str]] = ()) -> SimulatedNode:
    """The node behind `machine:requests` (a name or a file), with other values of some parameters."""
    return changed(scaled(load(machine).definition, simulator.simulate), settings)


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
    message size in bytes (None: one endless message).

    `intensity` in flop/B, `copy` the MB/s that an accelerator would write to `comp_node` alone, `far_thread`:
    the communication threads are not on the NIC's socket. UsageError for what the machine has not;
    MachineError when the simulator cannot be built.
    """
    node = simulated_node(machine, settings)
    counts = _counts(node, cores)
    loads = [_load(comp_node, comm_node, intensity, direction, size, comm_threads, copy) for size in sizes]
    for item in loads:
        _check(node, item)
    truth = Requests(node, simulator.simulate, seed=seed)
    curves = tuple(curve(truth, item, counts, pattern=kernel, far=far_thread) for item in loads)
    return Simulated(node, curves, tuple(onset_of(one) for one in curves))


def _counts(node: SimulatedNode, cores: Sequence[int] | None) -> tuple[int, ...]:
    most = node.shape.cores_first_socket
    if cores is None:
        return tuple(range(1, most + 1))
    if not cores:
        raise UsageError("names no number of cores", field="cores", hint=f"1 to {most}")
    for n in cores:
        if not 1 <= n <= most:
            raise UsageError(
                f"{node.shape.name} has not that many cores on its first socket",
                field="cores",
                value=n,
                hint=f"1 to {most}",
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


def _check(node: SimulatedNode, load: Load) -> None:
    try:
        check_load(node.shape, load)
        experiment(node, Moment(load.computing, copies=load.copies), 1)
    except UsageError as error:
        field = _SAID.get(error.field, error.field)
        raise UsageError(error.message, field=field, value=error.value, hint=error.hint) from error


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
    with computing("simulating, in many short runs"):
        node = simulated_node(machine, settings)
        truth = Requests(node, simulator.simulate, seed=seed)
        counts = _counts(node, None)
        curves = tuple(_placed(truth, place, counts) for place in _placements(node))
        swept = tuple(one for sweep in SWEEPS for one in _swept(node, sweep, seed))
        files = () if folder is None else _drawn(Path(folder), node, curves, swept)
    return Questions(node, answers(curves), swept, files)


def _placements(node: SimulatedNode) -> tuple[tuple[int, int], ...]:
    """Both on one node, near and far, then apart."""
    if node.core_rate_remote is None:
        return ((0, 0),)
    far = node.shape.numa_per_socket
    return ((0, 0), (far, far), (0, far), (far, 0))


def _placed(truth: Requests, place: tuple[int, int], counts: Sequence[int], kernel: Pattern = "nt") -> Curve:
    return curve(truth, _load(*place, 0.0, "receive", None, 1, None), counts, pattern=kernel)


def _swept(node: SimulatedNode, sweep: ParameterSweep, seed: int) -> list[Swept]:
    """One parameter at a time, with a dozen numbers of cores; no sweep to the other socket where there is
    none.
    """
    if sweep.far and node.core_rate_remote is None:
        return []
    data, most = node.shape.numa_per_socket if sweep.far else 0, node.shape.cores_first_socket
    counts = sorted({max(1, round(most * k / 12)) for k in range(1, 13)})
    swept = []
    for factor in sweep.factors:
        value = max(1, round(factor * getattr(node, sweep.parameter)))
        truth = _truth(changed(node, [(sweep.parameter, str(value))]), seed)
        curve = _placed(truth, (data, data), counts, sweep.kernel)
        swept.append(Swept(sweep, float(value), curve, onset_of(curve)))
    return swept


def _truth(node: SimulatedNode, seed: int) -> Requests:
    return Requests(node, simulator.simulate, seed=seed)


def _drawn(
    folder: Path, node: SimulatedNode, curves: Sequence[Curve], swept: Sequence[Swept]
) -> tuple[Path, ...]:
    """One figure for each question, and one of all that was varied."""
    name = node.shape.name
    make_folder(folder, field="out", hint="name another folder")
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


def _varied(sweep: ParameterSweep, swept: Sequence[Swept]) -> Figure:
    where = "far data" if sweep.far else "near data"
    points = [(one.value, one.curve.rows[-1].comp_kept, one.curve.rows[-1].comm_kept) for one in swept]
    return varied(f"{sweep.parameter}, {sweep.kernel}, {where}", sweep.parameter, points)


def simulated_figure(simulated: Simulated) -> Figure:
    """Bandwidths of the first curve over n."""
    return bandwidths(simulated.node.shape.name, simulated.curves[0])


CLOCKS = ("affine", "thermal", "walk", "steps", "slewing", "mixed")
LINKS = ("symmetric", "asymmetric", "lossy", "heavy-tail", "busy")


def simulate_clocks(
    clocks: int = 1024,
    *,
    seconds: float = 600.0,
    every: float = 10.0,
    clock: str = "thermal",
    link: str = "symmetric",
    bad: float = 0.0,
    seed: int = 1,
    shown: int = 4,
) -> SimulatedClocks:
    """`clocks` that drift as `clock` says (one of CLOCKS), compared over links as `link` says (LINKS) every
    so many seconds, `bad` (0 to 0.5) of the sync points told wrong; how right corrected times are then, by
    the truth. `shown` clocks are told one by one. The same `seed` gives the same outcome.

    UsageError for what cannot be simulated, MachineError when the simulator cannot be built.
    """
    _check_clocks(clocks, seconds, every, clock, link, bad)
    request: dict[str, Any] = {
        "clocks": clocks,
        "duration_ns": round(seconds * 1e9),
        "every_ns": round(every * 1e9),
        "clock": clock,
        "link": link,
        "bad": bad,
        "seed": seed,
        "shown": shown,
    }
    return simulator.simulate_clocks(request)


def _check_clocks(clocks: int, seconds: float, every: float, clock: str, link: str, bad: float) -> None:
    for field, value, known in (("clock", clock, CLOCKS), ("link", link, LINKS)):
        if value not in known:
            raise UsageError("there is none", field=field, value=value, hint=f"one of {', '.join(known)}")
    if not 1 <= clocks <= 65536:
        raise UsageError("is not between 1 and 65536", field="clocks", value=clocks, hint="for instance 1024")
    for field, time in (("seconds", seconds), ("every", every)):
        if not 1e-6 <= time <= 1e6:
            raise UsageError("is not between 1e-6 and 1e6 s", field=field, value=time, hint="for instance 10")
    if not 0 <= bad <= 0.5:
        raise UsageError("is not between 0 and 50%", field="bad", value=bad, hint="give at most half")


def save_simulated_clocks(clocks: SimulatedClocks, file: str | Path) -> None:
    """The figures as a .svg or .png, or the clocks that are told one by one as a page (.html)."""
    path = Path(file)
    if path.suffix == ".html":
        write_atomically(path, sync_report(clocks.sync).encode())
        return
    title = f"{clocks.clocks} simulated clocks"
    save_panels(simulated_clock_figures(clocks), path, columns=2, title=title, shared=False)
