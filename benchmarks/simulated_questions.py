"""Who loses first, from which n on, is a minimum kept, controller or link: what a simulated node answers.

    python benchmarks/simulated_questions.py [--machine henri] [--set KEY=VALUE]... [--seed 1] [-o FOLDER]
    [--json]

For memset beside messages that arrive, in four placements, and for other values of the parameters that may
decide (docs/guide/simulate.md). `-o` draws a figure for each question. Needs a C++ compiler.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from command import Command

from elbowroom.draw.figure import Axis, Figure, Hue, Series, Side
from elbowroom.draw.files import save, save_panels
from elbowroom.files import make_folder
from elbowroom.heartbeat import Wait
from elbowroom.launch import executables
from elbowroom.models.figures import CORES
from elbowroom.models.load import Computing, Load, Messages
from elbowroom.quantities import plural
from elbowroom.virtual.machines import of_name
from elbowroom.virtual.request_calibration import scaled
from elbowroom.virtual.request_node import SimulatedNode, changed
from elbowroom.virtual.requests import Requests, curve
from elbowroom.virtual.simulated import (
    LOSS,
    SIMULATED,
    LossOnset,
    SimulatedCurve,
    SimulatedRow,
    bandwidths,
    onset_of,
    who,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from elbowroom.virtual.requests import Pattern


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
    curve: SimulatedCurve
    finding: LossOnset


class Questions(NamedTuple):
    """The four answers, what other values of some parameters would change, and the figures written."""

    node: SimulatedNode
    answers: tuple[QuestionAnswer, ...]
    swept: tuple[Swept, ...]
    files: tuple[Path, ...]


def simulate_questions(
    machine: str,
    folder: Path | str | None = None,
    *,
    settings: Iterable[tuple[str, str]] = (),
    seed: int = 1,
    sweeps: Sequence[ParameterSweep] = SWEEPS,
) -> Questions:
    """Who loses first, from which n on, is a minimum kept, controller or link: answered for memset and
    messages that arrive, in four placements, with figures in `folder`, and for other values of what decides
    it.
    """
    with Wait("simulating, in many short runs"):
        node = changed(scaled(of_name(machine), executables.simulate), settings)
        truth = Requests(node, executables.simulate, seed=seed)
        counts = tuple(range(1, node.shape.cores_first_socket + 1))
        curves = tuple(_placed(truth, place, counts) for place in _placements(node))
        swept = tuple(one for sweep in sweeps for one in _swept(node, sweep, seed))
        files = () if folder is None else _drawn(Path(folder), node, curves, swept, sweeps)
    return Questions(node, answers(curves), swept, files)


def _placements(node: SimulatedNode) -> tuple[tuple[int, int], ...]:
    """Both on one node, near and far, then apart."""
    if node.core_rate_remote is None:
        return ((0, 0),)
    far = node.shape.numa_per_socket
    return ((0, 0), (far, far), (0, far), (far, 0))


def _placed(
    truth: Requests, place: tuple[int, int], counts: Sequence[int], kernel: Pattern = "nt"
) -> SimulatedCurve:
    load = Load(computing=(Computing(socket=0, node=place[0], count=1),), messages=Messages(node=place[1]))
    return curve(truth, load, counts, pattern=kernel)


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
    return Requests(node, executables.simulate, seed=seed)


def _drawn(
    folder: Path,
    node: SimulatedNode,
    curves: Sequence[SimulatedCurve],
    swept: Sequence[Swept],
    sweeps: Sequence[ParameterSweep],
) -> tuple[Path, ...]:
    """One figure for each question, and one of all that was varied."""
    name = node.shape.name
    make_folder(folder, field="out", hint="name another folder")
    panels = {
        "who-loses-first": ([kept(name, one) for one in curves], "who loses first"),
        "from-which-n": ([bandwidths(name, one) for one in curves], "from which n on"),
        "controller-or-link": ([stations(name, one) for one in curves], "controller or link"),
        "what-decides": (
            [_varied(sweep, [one for one in swept if one.sweep is sweep]) for sweep in sweeps if swept],
            "what decides (kept with all cores)",
        ),
    }
    written = []
    for file, (drawn, title) in panels.items():
        path = folder / f"{file}.png"
        save_panels([one for one in drawn if one.series], path, columns=2, title=f"{name}: {title}")
        written.append(path)
    save(minimum(name, curves), folder / "minimum-kept.png")
    return (*written, folder / "minimum-kept.png")


def _varied(sweep: ParameterSweep, swept: Sequence[Swept]) -> Figure:
    where = "far data" if sweep.far else "near data"
    points = [(one.value, one.curve.rows[-1].comp_kept, one.curve.rows[-1].comm_kept) for one in swept]
    return varied(f"{sweep.parameter}, {sweep.kernel}, {where}", sweep.parameter, points)


STEADY = 0.02
"""Communications keep a minimum if the last third of the cores takes less than this share of them."""


class QuestionAnswer(NamedTuple):
    """A question, its answer in sentences, and the name of the figure that shows it."""

    question: str
    sentences: tuple[str, ...]
    figure: str


def answers(curves: Sequence[SimulatedCurve]) -> tuple[QuestionAnswer, ...]:
    """The four questions, each answered for every placement."""
    findings = [(curve, onset_of(curve)) for curve in curves]
    return (
        QuestionAnswer(
            "Who loses first?",
            tuple(f"{_place(curve)}: {who(onset, curve)}." for curve, onset in findings),
            "who-loses-first",
        ),
        QuestionAnswer(
            "From how many cores on?",
            tuple(f"{_place(curve)}: {_onset(onset, curve)}." for curve, onset in findings),
            "from-which-n",
        ),
        QuestionAnswer(
            "Do communications keep a minimum?",
            tuple(f"{_place(curve)}: {_minimum(onset, curve)}." for curve, onset in findings),
            "minimum-kept",
        ),
        QuestionAnswer(
            "Controller or link?",
            tuple(f"{_place(curve)}: {_station(onset, curve)}." for curve, onset in findings),
            "controller-or-link",
        ),
    )


def _onset(onset: LossOnset, curve: SimulatedCurve) -> str:
    parts = [
        f"{side} never" if n is None else f"{side} from {plural(n, 'core')}"
        for side, n in (("computation", onset.comp_from), ("communication", onset.comm_from))
    ]
    return f"loss of more than {LOSS:.0%}: {parts[0]}, {parts[1]} (of {curve.rows[-1].n})"


def _minimum(onset: LossOnset, curve: SimulatedCurve) -> str:
    last = curve.rows[-1]
    if onset.comm_from is None:
        return (
            f"they keep {onset.comm_least:.2f} at least, and lose nothing that a minimum would have to stop"
        )
    verdict = "a minimum is kept" if onset.floor < STEADY else "no minimum yet"
    return (
        f"{verdict}: with {plural(last.n, 'core')} they keep {last.comm_kept:.2f}, and the last third of the "
        f"cores took {max(onset.floor, 0.0):.2f} of it"
    )


def _station(onset: LossOnset, curve: SimulatedCurve) -> str:
    saturated = [name for name, use in curve.rows[-1].stations.items() if use > 0.95]
    end = f"; with all cores saturated: {', '.join(saturated)}" if saturated else ""
    if onset.first == "nobody":
        return f"neither side loses; most in use with all cores is {onset.station} ({onset.use:.0%}){end}"
    return f"where the loss begins, {onset.station} is in use {onset.use:.0%} of the time{end}"


def _place(curve: SimulatedCurve) -> str:
    return f"computations on node {curve.comp_node}, communications on node {curve.comm_node}"


def kept(name: str, curve: SimulatedCurve) -> Figure:
    """What both sides keep of what they had alone."""
    return _over_cores(
        f"kept-{name}-comp{curve.comp_node}-comm{curve.comm_node}",
        _place(curve),
        "Kept (together / alone)",
        curve,
        [
            ("computation", "red", lambda row: row.comp_kept),
            ("communication", "blue", lambda row: row.comm_kept),
        ],
    )


def minimum(name: str, curves: Sequence[SimulatedCurve]) -> Figure:
    """What communications keep in several placements."""
    return Figure(
        name=f"minimum-{name}",
        title=f"{name}: what communications keep",
        x=CORES,
        left=Axis(label="Kept (together / alone)", reference=1.0),
        series=tuple(
            Series(
                name=_nodes(curve),
                side="communication",
                style="line",
                x=tuple(float(row.n) for row in curve.rows),
                y=tuple(row.comm_kept for row in curve.rows),
                value="simulated",
            )
            for curve in curves
        ),
        caption=SIMULATED,
    )


def stations(name: str, curve: SimulatedCurve) -> Figure:
    """Share of the time that stations are in use, both sides together."""
    hues: dict[str, Hue] = {"root complex": "blue", "link": "black"}
    # The same names in all panels, whichever nodes they are of.
    names = {
        f"controller of node {curve.comm_node}": "controller of the communications",
        f"controller of node {curve.comp_node}": "controller of the computations",
    }
    return _over_cores(
        f"stations-{name}-comp{curve.comp_node}-comm{curve.comm_node}",
        _place(curve),
        "Share of the time in use",
        curve,
        [(names.get(key, key), hues.get(key, "red"), _use(key)) for key in curve.rows[0].stations],
    )


def varied(title: str, parameter: str, points: Sequence[tuple[float, float, float]]) -> Figure:
    """Over a parameter's values what both sides keep: value, computation, communication. No series without
    points.
    """
    sides: tuple[Side, Side] = ("computation", "communication")
    return Figure(
        name=f"varied-{parameter}",
        title=title,
        x=Axis(label="Value of the parameter"),
        left=Axis(label="Kept (together / alone)", reference=1.0),
        series=tuple(
            Series(
                name=side,
                side=side,
                style="line",
                x=tuple(point[0] for point in points),
                y=tuple(point[place] for point in points),
                value="simulated",
            )
            for place, side in enumerate(sides, start=1)
            if points
        ),
        caption=SIMULATED,
    )


def _over_cores(
    name: str,
    title: str,
    label: str,
    curve: SimulatedCurve,
    lines: Sequence[tuple[str, Hue, Callable[[SimulatedRow], float]]],
) -> Figure:
    x = tuple(float(row.n) for row in curve.rows)
    return Figure(
        name=name,
        title=title,
        x=CORES,
        left=Axis(label=label, reach=0.0),
        series=tuple(
            Series(
                name=text,
                hue=hue,
                style="line",
                x=x,
                y=tuple(of(row) for row in curve.rows),
                value="simulated",
            )
            for text, hue, of in lines
        ),
        caption=SIMULATED,
    )


def _use(station: str) -> Callable[[SimulatedRow], float]:
    return lambda row: row.stations[station]


def _nodes(curve: SimulatedCurve) -> str:
    if curve.comp_node == curve.comm_node:
        return f"both on node {curve.comp_node}"
    return f"computations on {curve.comp_node}, they on {curve.comm_node}"


def show(questions: Questions) -> None:
    """The sentences, and a line for each value of a parameter."""
    for answer in questions.answers:
        print(answer.question)
        for sentence in answer.sentences:
            print(f"- {sentence}")
    print(f"{'parameter':20}{'kernel':8}{'data':6}{'value':>8}", end="")
    print(f"{'comp kept':>11}{'from':>6}{'comm kept':>11}{'from':>6}  loses first")
    for item in questions.swept:
        row, onset = item.curve.rows[-1], item.finding
        where = "far" if item.sweep.far else "near"
        print(f"{item.sweep.parameter:20}{item.sweep.kernel:8}{where:6}{item.value:8g}", end="")
        print(f"{row.comp_kept:11.2f}{onset.comp_from or '-':>6}", end="")
        print(f"{row.comm_kept:11.2f}{onset.comm_from or '-':>6}  {onset.first}")
    for path in questions.files:
        print(f"figure: {path}")


def main() -> None:
    parser = Command(__doc__, smoke="--machine occigen --sweeps 1")
    parser.add_argument("--machine", default="henri")
    parser.add_argument("--set", dest="settings", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--sweeps", type=int, default=len(SWEEPS), help="only so many of the sweeps")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-o", "--out", type=Path, help="folder of figures")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    settings = [tuple(word.split("=", 1)) for word in options.settings]
    answered = simulate_questions(
        options.machine, options.out, settings=settings, seed=options.seed, sweeps=SWEEPS[: options.sweeps]
    )
    if not options.json:
        show(answered)
        return
    swept = [
        {
            **item.sweep._asdict(),
            "value": item.value,
            "comp_kept": item.curve.rows[-1].comp_kept,
            "comm_kept": item.curve.rows[-1].comm_kept,
            "finding": msgspec.to_builtins(item.finding),
        }
        for item in answered.swept
    ]
    document = {
        "node": msgspec.to_builtins(answered.node),
        "answers": [answer._asdict() for answer in answered.answers],
        "swept": swept,
        "files": [str(path) for path in answered.files],
    }
    print(json.dumps(document))


if __name__ == "__main__":
    main()
