"""Factorizations on simulated clusters as curves: over the size of the matrix and of its tiles, the grid of
processes (figures 4.9 to 4.16 of Swartvagher's thesis), and the network (its section 4.5.1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal, NamedTuple

import msgspec

from elbowroom.broadcast.factorizations import (
    FactorizationRequest,
    KernelTimes,
    SimulatedFactorization,
    factorization_document,
)
from elbowroom.draw.figure import Axis, Figure, Series
from elbowroom.points.factorizations import Task

BLOCK = 320
"""Rows of a tile, where a figure says nothing else (thesis, section 4.4.3)."""

AT_ONCE = 2
"""Simulations."""


class SimulatedNodes(NamedTuple):
    """Nodes of a simulated cluster: cores of a process that compute, Gflop/s of each in products of tiles,
    and B/s and s of a node's link.
    """

    workers: int
    core_gflops: float
    bandwidth: float
    latency: float = 2e-6


OCCIGEN = SimulatedNodes(27, 43.0, 6e9)
"""28 cores, one for messages; the plateau of Fig. 4.11 is 228 Tflop/s on 196 nodes; FDR InfiniBand."""

OCCIGEN_SOCKET = OCCIGEN._replace(workers=13)
"""A process on each of a node's two sockets."""

INTI = SimulatedNodes(15, 19.4, 3.2e9)
"""16 cores of Sandy Bridge (90 % of 2.7 GHz x 8 flop); QDR InfiniBand."""


class CurveLine(NamedTuple):
    """A curve. `gain`: what the thesis says of its rate, divided by that of the first line; `at`: where."""

    name: str
    tree: str
    gain: float | None = None
    at: Literal["most", "last", "first"] = "most"
    options: Mapping[str, bool] = {}


class CurveCase(NamedTuple):
    """A place on the x axis: tiles, processes, and what differs of the network."""

    rows: int
    columns: int
    grid: tuple[int, int]
    block: int = BLOCK
    network: Mapping[str, float] = {}

    @property
    def order(self) -> int:
        """Columns of the matrix."""
        return self.columns * self.block

    @property
    def shape(self) -> str:
        """`2x98`."""
        return f"{self.grid[0]}x{self.grid[1]}"


class CurveFigure(NamedTuple):
    """A figure: what it shows, and the x of a case (a name where it is no number)."""

    title: str
    task: Task
    cluster: SimulatedNodes
    lines: tuple[CurveLine, ...]
    cases: tuple[CurveCase, ...]
    x: Callable[[CurveCase], float | str] = lambda case: case.order
    label: str = "Columns of the matrix"
    sharing: int = 1


def _sizes(grid: tuple[int, int], *tiles: int, wide: int = 1) -> tuple[CurveCase, ...]:
    return tuple(CurveCase(rows, wide * rows, grid) for rows in tiles)


def _lines(binomial: float | None = None, binary: float | None = None) -> tuple[CurveLine, ...]:
    return (
        CurveLine("without broadcasts", "none"),
        CurveLine("binomial", "binomial", binomial),
        CurveLine("binary", "binary", binary),
    )


_OLD = (
    CurveLine("without broadcasts", "none", options={"early": False}),
    CurveLine("binomial, readers wait for release", "binomial", options={"early": False}),
)

_PRIORITIES = (
    CurveLine("without broadcasts", "none"),
    CurveLine("without broadcasts, no priorities", "none", 151 / 228, "last", {"priorities": False}),
    CurveLine("binomial", "binomial"),
    CurveLine("binomial, no priorities", "binomial", options={"priorities": False}),
    CurveLine("binary", "binary"),
    CurveLine("binary, no priorities", "binary", options={"priorities": False}),
)

_EARLY = (
    CurveLine("binomial, readers wait for release", "binomial", options={"early": False}),
    CurveLine("binomial, readers start at received", "binomial"),
    CurveLine("binary, readers wait for release", "binary", options={"early": False}),
    CurveLine("binary, readers start at received", "binary"),
)

_LARGE = (30, 60, 90, 120, 180)
_WIDE = (10, 20, 40, 60, 90)
_QUOTIENTS = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
_MICROSECONDS = (0.5, 2.0, 8.0, 32.0)


def _over(name: str, values: Sequence[float], case: CurveCase) -> tuple[CurveCase, ...]:
    return tuple(case._replace(network={name: value}) for value in values)


_CHOLESKY = CurveCase(48, 48, (8, 8))
_QR = CurveCase(8, 96, (1, 48))


def _network(
    name: str, values: Sequence[float], scale: float, unit: str
) -> Iterator[tuple[str, CurveFigure]]:
    for task, case in (("cholesky", _CHOLESKY), ("qr", _QR)):
        yield (
            f"{name}-{task}",
            CurveFigure(
                f"{task}, {case.rows} x {case.columns} tiles on {case.shape} processes",
                task,  # type: ignore[arg-type]
                OCCIGEN,
                _lines(),
                _over(name, [value * scale for value in values], case),
                lambda case: case.network[name] / scale,
                f"{name.capitalize()} ({unit})",
            ),
        )


FIGURES: dict[str, CurveFigure] = {
    "4.9-64": CurveFigure(
        "Cholesky, inti, 64 nodes (old implementation)", "cholesky", INTI,
        (_OLD[0], _OLD[1]._replace(gain=1.2)), _sizes((8, 8), 20, 40, 80, 120),
    ),
    "4.9-100": CurveFigure(
        "Cholesky, inti, 100 nodes (old implementation)", "cholesky", INTI,
        (_OLD[0], _OLD[1]._replace(gain=1.3)), _sizes((10, 10), 20, 40, 80, 120),
    ),
    "4.10a": CurveFigure(
        "Cholesky, occigen, 196 nodes", "cholesky", OCCIGEN, _lines(1.0, 1.0), _sizes((14, 14), *_LARGE)
    ),
    "4.10b": CurveFigure(
        "Cholesky, occigen, 200 nodes with two processes each", "cholesky", OCCIGEN_SOCKET,
        _lines(None, 1.15), _sizes((20, 20), *_LARGE), sharing=2,
    ),
    "4.11": CurveFigure(
        "Cholesky, occigen, 196 nodes: priorities", "cholesky", OCCIGEN, _PRIORITIES,
        _sizes((14, 14), 60, 120, 180),
    ),
    "4.12": CurveFigure(
        "Cholesky, occigen, 196 nodes: when readers start", "cholesky", OCCIGEN, _EARLY,
        _sizes((14, 14), *_LARGE),
    ),
    "4.14": CurveFigure(
        "QR, occigen, 1 x 196 processes", "qr", OCCIGEN, _lines(5.0, 7.0), _sizes((1, 196), *_WIDE, wide=3)
    ),
    "4.15": CurveFigure(
        "QR, occigen, 1 x 196 processes: size of tiles", "qr", OCCIGEN, _lines(),
        tuple(CurveCase(28_800 // b, 86_400 // b, (1, 196), b) for b in (240, 320, 480, 640, 960)),
        lambda case: case.block, "Rows of a tile",
    ),
    "4.16": CurveFigure(
        "QR, occigen, 196 processes, matrix of 28,800 x 86,400", "qr", OCCIGEN,
        (CurveLine("without broadcasts", "none"), CurveLine("binomial", "binomial"),
         CurveLine("binary", "binary", 30.7 / 5, "first")),
        tuple(CurveCase(90, 270, grid) for grid in ((1, 196), (2, 98), (4, 49), (7, 28), (14, 14))),
        lambda case: case.shape, "Grid of processes",
    ),
    **dict(_network("bandwidth", _QUOTIENTS, OCCIGEN.bandwidth, "1 = 6 GB/s")),
    **dict(_network("latency", _MICROSECONDS, 1e-6, "us")),
    **dict(_network("overhead", _MICROSECONDS, 1e-6, "us")),
}  # fmt: skip
"""By name: of the thesis' figure, or of what is varied and the task."""


class CurvePoint(msgspec.Struct, frozen=True, kw_only=True):
    """One simulated factorization of a line at `x`; `gain`: its rate, divided by that of the first line."""

    line: str
    x: float | str
    rows: int
    columns: int
    block: int
    grid: str
    seconds: float
    Tflop_s: float
    busy: float
    broadcasts: int
    messages: int
    gain: float | None


class CurveGain(msgspec.Struct, frozen=True, kw_only=True):
    """The gain of a line where the thesis says one, and the share by which it differs."""

    line: str
    gain: float
    thesis: float

    @property
    def difference(self) -> float:
        """Above 0: more than in the thesis."""
        return self.gain / self.thesis - 1


class CurvesDocument(msgspec.Struct, frozen=True, kw_only=True):
    """What `broadcast curves --json` prints."""

    schema: str = "elbowroom/broadcast-curves"
    version: int = 1
    simulated: bool = True
    figure: str
    title: str
    points: list[CurvePoint]
    gains: list[CurveGain]


def scaled_times(times: Mapping[int, KernelTimes], cluster: SimulatedNodes) -> dict[int, KernelTimes]:
    """The times on a core of the cluster: all kernels are as much faster as products of tiles of BLOCK."""
    factor = 2 * BLOCK**3 / times[BLOCK].seconds["gemm"] / (cluster.core_gflops * 1e9)
    return {
        block: msgspec.structs.replace(
            own, seconds={step: seconds * factor for step, seconds in own.seconds.items()}
        )
        for block, own in times.items()
    }


def request_of(
    curves: CurveFigure,
    case: CurveCase,
    line: CurveLine,
    times: KernelTimes,
    network: Mapping[str, float] = {},
) -> FactorizationRequest:
    """What is to be simulated for a line at a place."""
    cluster = curves.cluster
    links: dict[str, Any] = {
        "bandwidth": cluster.bandwidth, "latency": cluster.latency, **network, **case.network
    }  # fmt: skip
    return FactorizationRequest(
        task=curves.task,
        rows=case.rows,
        columns=case.columns,
        grid=case.grid,
        times=times,
        workers=cluster.workers,
        tree=line.tree,
        sharing=curves.sharing,
        **links,
        **line.options,
    )


def draw_curves(
    name: str,
    cases: Sequence[CurveCase],
    times: Mapping[int, KernelTimes],
    simulate: Callable[[FactorizationRequest], SimulatedFactorization],
    tell: Callable[[str], object],
    network: Mapping[str, float] = {},
) -> CurvesDocument:
    """Simulates a figure at those cases; `times`: by rows of a tile, BLOCK among them. `network`: of its
    bandwidth, latency and overhead, what is not that of the figure's cluster. `tell` is called with each
    result.
    """
    curves = FIGURES[name]
    scaled = scaled_times(times, curves.cluster)
    requests = [
        (case, line, request_of(curves, case, line, scaled[case.block], network))
        for case in cases
        for line in curves.lines
    ]
    points: list[CurvePoint] = []
    base = 0.0
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for (case, line, request), simulated in zip(
            requests, pool.map(lambda one: simulate(one[2]), requests), strict=True
        ):
            document = factorization_document(simulated, request)
            if line is curves.lines[0]:
                base = simulated.seconds
            point = CurvePoint(
                line=line.name,
                x=curves.x(case),
                rows=case.rows,
                columns=case.columns,
                block=case.block,
                grid=case.shape,
                seconds=simulated.seconds,
                Tflop_s=document.Gflop_s / 1e3,
                busy=simulated.busy,
                broadcasts=simulated.broadcasts,
                messages=simulated.messages,
                gain=base / simulated.seconds,
            )
            points.append(point)
            tell(f"{point.x}, {line.name}: {point.seconds:.4g} s, {point.Tflop_s:.3g} Tflop/s")
    gains = [
        CurveGain(line=line.name, gain=_gain(points, line), thesis=line.gain)
        for line in curves.lines
        if line.gain is not None
    ]
    return CurvesDocument(figure=name, title=curves.title, points=points, gains=gains)


def _gain(points: Sequence[CurvePoint], line: CurveLine) -> float:
    gains = [point.gain or 0.0 for point in points if point.line == line.name]
    return {"most": max(gains), "first": gains[0], "last": gains[-1]}[line.at]


def curves_figure(document: CurvesDocument) -> Figure:
    """Tflop/s of each line over the x of the figure."""
    curves = FIGURES[document.figure]
    places = list(dict.fromkeys(point.x for point in document.points))
    named = tuple(place for place in places if isinstance(place, str))
    spread = not named and max(map(float, places)) > 8 * min(map(float, places))
    series = []
    for line in curves.lines:
        own = [point for point in document.points if point.line == line.name]
        series.append(
            Series(
                name=line.name,
                style="together" if line.options else "alone",
                hue="black" if line.tree == "none" else "blue" if line.tree == "binomial" else "red",
                x=tuple(float(places.index(p.x)) if isinstance(p.x, str) else p.x for p in own),
                y=tuple(point.Tflop_s for point in own),
                value="simulated",
            )
        )
    return Figure(
        name=f"curves-{document.figure}",
        title=document.title,
        x=Axis(label=curves.label, names=named, scale="log2" if spread else "linear"),
        left=Axis(label="Tflop/s (simulated)", reach=0.0),
        series=tuple(series),
        caption="Simulated: the libraries' own code over flows that share links.",
    )
