"""What is believed of FLOW's parameters before a fit: centres read off the runs, wide bands, bounds.

The fit works in coordinates without units: logarithms, of the weights of communication log(weight + 0.1), and
LINEAR parameters as they are. Parameters beyond FLOW's own are there only if a run tells of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache

import msgspec
import numpy as np
from numpy.typing import NDArray

from elbowroom.models.curves import Shape
from elbowroom.models.flow.extras import NEUTRAL
from elbowroom.models.flow.law import NAMES, Array, Situations
from elbowroom.models.flow.regimes import Regime, regimes
from elbowroom.models.load import LoadRow, Question

WEIGHTS = ("weight_first", "weight_second")
WEIGHT_OFFSET = 0.1
"""Added to WEIGHTS, which may be 0, before the logarithm."""

LINEAR = ("floor", "excess", "dip", "rise", "thrift", "latency_load", "relief", "queueing", "quant", "late")
"""Kinds of parameters (`_kind`), those of an accelerator (models/gpu/law.py) among them."""

REACH, LOAD_REACH = 1.5, 2.0
"""Bounds of a logarithm around its centre, FLOW's own parameters and others: factors of 4.5 and 7.4."""

WIDTHS = {
    "uplink": 0.3,
    "crossing": 0.4,
    "root": 0.4,
    "comm": 0.5,
    "weight": 1.5,
    "remote_weight": 0.5,
    "remote_cost": 0.4,
    "dip": 0.05,
    "excess": 0.1,
    "peak": 0.5,
    "roofline": 0.6,
    "thrift": 0.5,
    "latency_load": 0.5,
    "queueing": 0.4,
    "copy_weight": 0.7,
    "devices": 0.7,
    "way_floor": 0.7,
    "way_room": 0.25,
    "latency": 0.5,
    "speed": 0.5,
    "pattern": 0.15,
}
WIDTH = 0.3
"""Standard deviation of a prior, in the fit's coordinates, where WIDTHS has none for its kind."""

CENTRES = {
    "floor": 0.7,
    "weight": 1.0,
    "cost": 1.0,
    "remote_weight": 1.0,
    "dip": 0.03,
    "rise": 0.03,
    "excess": 0.0,
}
"""Of FLOW's own parameters that the runs do not show at first sight."""

LOAD_CENTRES = {
    "roofline": 3.0,
    "thrift": 1.0,
    "latency_load": 0.5,
    "relief": 0.3,
    "thread_gain": 1.1,
    "queueing": 0.7,
    "both": 1.5,
}
"""Of the others, where the centre is not what the rows show at first sight, or NEUTRAL."""

BOUNDS = {
    "floor": (0.0, 1.0),
    "weight": (float(np.log(WEIGHT_OFFSET)), float(np.log(50))),
    "dip": (0.0, 0.3),
    "rise": (0.0, 0.9),
    "excess": (-0.05, 0.6),
    "roofline": (float(np.log(0.7)), float(np.log(20.0))),
    "thrift": (0.0, 2.5),
    "latency_load": (0.0, 3.0),
    "relief": (0.0, 1.0),
    "thread_gain": (0.0, float(np.log(8.0))),
    "queueing": (0.0, 1.2),
    "way_room": (float(np.log(0.3)), float(np.log(1.2))),
}
"""In the fit's coordinates."""

FASTEST = 10.0
"""Speed of a regime's messages over the calibrated ones: of small messages none can be told."""

UNSEEN_LATENCY = 2.0
"""Us, where only sizes near the calibrated one were measured, whose latency hardly shows."""

KERNEL, PATTERN = "kernel ", "pattern "
"""Before the names of the factors that other kernels and patterns have: fitted, and not kept."""

_THESIS = {"floor_first": 0.9, "floor_second": 0.9, "weight_first": 0.05, "weight_second": 0.05}
"""Communication loses down to a high floor, knees are sharp."""
_PROPORTION = {"floor_first": 0.2, "floor_second": 0.2, "weight_first": 4.0, "weight_second": 4.0}
"""Everything is shared out in proportion."""
_SOFT = {"dip_local": 0.05, "dip_remote": 0.05, "rise_local": 0.3, "rise_remote": 0.3}
"""Knees are rounded."""
LOWEST = 1.0
"""MB/s, below all bounds: a fit that starts there starts at the lower bound, the centre over 4.5 (REACH)."""
_ROOT, _CROSSING = {"root": LOWEST}, {"crossing": LOWEST}
"""Messages in another node lose to the requests of all cores (root), or to remote cores (crossing). Both
centres are at or beyond what the runs reached, where little or nothing depends on them: a fit that starts
there may never bring them down.
"""
STARTS: tuple[dict[str, float], ...] = (
    {},
    _THESIS | _ROOT,
    _PROPORTION | {"dip_local": 0.1, "dip_remote": 0.1},
    _PROPORTION | _SOFT | _CROSSING,
    _THESIS | _CROSSING | _ROOT,
    _THESIS | _CROSSING | _ROOT,
    _SOFT | {"cost_first": 1.5, "cost_second": 1.5} | _ROOT,
)
"""What differs from the centres where a fit starts. One start appears twice: it may take the places of two
finalists (flow/fit.py), so that without its double other fits would go on.
"""


class Prior(msgspec.Struct, frozen=True, kw_only=True):
    """Of the coordinates `names`, arrays of length P. `starts`: where fits begin; `switches`: first sizes of
    the regimes of messages but the first; `flags`: what the runs do not show at all.
    """

    names: tuple[str, ...]
    centre: Array
    width: Array
    low: Array
    high: Array
    starts: tuple[Array, ...] = ()
    switches: tuple[int, ...] = ()
    flags: tuple[str, ...] = ()

    def followed_by(self, other: Prior) -> Prior:
        """Of these coordinates, then the other's; with the other's switches."""
        both = ((getattr(self, name), getattr(other, name)) for name in ("centre", "width", "low", "high"))
        centre, width, low, high = (np.concatenate(pair) for pair in both)
        names = (*self.names, *other.names)
        return Prior(names=names, centre=centre, width=width, low=low, high=high, switches=other.switches)


@cache
def _scales(names: tuple[str, ...]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which parameters have logarithms as coordinates, and which of these an offset."""
    return (
        np.array([_kind(name) not in LINEAR for name in names], dtype=bool),
        np.array([name in WEIGHTS for name in names], dtype=bool),
    )


def encode(parameters: Array, names: tuple[str, ...]) -> Array:
    """Parameters (..., P) of those names to coordinates."""
    logs, weights = _scales(names)
    coordinates = np.array(parameters, dtype=float)
    coordinates[..., weights] += WEIGHT_OFFSET
    coordinates[..., logs] = np.log(coordinates[..., logs])
    return coordinates


def decode(coordinates: Array, names: tuple[str, ...]) -> Array:
    """Coordinates (..., P) to parameters of those names."""
    logs, weights = _scales(names)
    parameters = np.array(coordinates, dtype=float)
    parameters[..., logs] = np.exp(parameters[..., logs])
    parameters[..., weights] = np.maximum(parameters[..., weights] - WEIGHT_OFFSET, 0.0)
    return parameters


def around(
    values: Mapping[str, float],
    widths: Mapping[str, float],
    bounds: Mapping[str, tuple[float, float]],
    reach: Mapping[str, float],
) -> Prior:
    """The prior with these parameters in its centre. `widths` and `bounds` are in the fit's coordinates;
    without bounds a parameter stays within `reach` of its centre.
    """
    names = tuple(values)
    centre = encode(np.array(list(values.values()), dtype=float), names)
    ends = [
        bounds.get(name, (at - reach[name], at + reach[name])) for name, at in zip(names, centre, strict=True)
    ]
    return Prior(
        names=names,
        centre=centre,
        width=np.array([widths[name] for name in names]),
        low=np.array([low for low, _ in ends], dtype=float),
        high=np.array([high for _, high in ends], dtype=float),
    )


def _around(values: Mapping[str, float], reach: float) -> Prior:
    """The prior of FLOW with these parameters in its centre."""
    kinds = {name: _kind(name) for name in values}
    return around(
        values,
        {name: WIDTHS.get(kind, WIDTH) for name, kind in kinds.items()},
        {name: BOUNDS[kind] for name, kind in kinds.items() if kind in BOUNDS},
        dict.fromkeys(values, reach),
    )


def prior(runs: Situations, measured: Array) -> Prior:
    """Of FLOW's own parameters, from the bandwidths of situations (4, S), NaN where not known; at least one
    of either stream is.

    Where a stream was not measured alone, what it got together is taken for the first sight.
    """
    comp, comm = (np.where(np.isfinite(measured[k]), measured[k], measured[k + 2]) for k in (0, 1))
    sights, flags = _sights(runs, np.stack([comp, comm, measured[2], measured[3]]))
    values = {name: CENTRES.get(_kind(name), 0.0) for name in NAMES} | sights
    return msgspec.structs.replace(
        _around({name: values[name] for name in NAMES}, REACH),
        starts=tuple(encode(np.array([(values | start)[name] for name in NAMES]), NAMES) for start in STARTS),
        flags=flags,
    )


def load_prior(rows: Sequence[LoadRow], shape: Shape, size: int, intensity: float, bandwidth: float) -> Prior:
    """Of the parameters beyond them that the rows tell of; `size`, `intensity`: the calibrated ones,
    `bandwidth` of messages of that size, MB/s.
    """
    values = _first_sight(rows, shape, size, intensity, bandwidth)
    sizes = _regimes(rows, size)
    if sizes:
        values |= {name: LOAD_CENTRES[name] for name in ("latency_load", "relief")}
        values |= _messages(sizes, size, bandwidth)
    values |= dict.fromkeys(_factors(rows), 1.0)
    before = _around(values, LOAD_REACH)
    return msgspec.structs.replace(before, switches=tuple(item.first for item in sizes[1:]))


def questions(rows: Sequence[LoadRow], size: int, intensity: float) -> tuple[Question, ...]:
    """What the rows tell of beyond situations."""
    loads = [row.load for row in rows]
    messages = [load.messages for load in loads if load.messages is not None]
    sizes = {item.size or size for item in messages} | {size}
    asks: dict[Question, bool] = {
        "intensity": any(group.intensity > intensity for load in loads for group in load.computing),
        "sizes": len(sizes) >= 3,
        "send": any(item.direction == "send" for item in messages),
        "both": any(item.direction == "both" for item in messages),
        "threads": any(item.threads > 1 for item in messages),
        "copies": any(load.copies for load in loads),
        "nodes": any(len({g.socket for g in load.computing}) < len(load.computing) for load in loads),
    }
    return tuple(name for name, there in asks.items() if there)


def _sights(runs: Situations, measured: Array) -> tuple[dict[str, float], tuple[str, ...]]:
    """First sight of every bandwidth, and what was not to be seen."""
    only_local, only_remote = runs.remote == 0, runs.local == 0
    local, remote = (
        _side(runs.local, only_local, runs, measured),
        _side(runs.remote, only_remote, runs, measured),
    )
    flags = []
    if local is None:
        flags.append("no local accesses measured")
    if remote is None:
        flags.append("no remote accesses measured")
    first = _middle(measured[1][~runs.second])
    second = _middle(measured[1][runs.second])
    if first is None or second is None:
        flags.append("messages into one socket only")
    comm = first or second or 0.0
    crossing = np.where(runs.beside & (runs.remote > 0), measured[2] + measured[3], np.nan)
    across = float(np.nanmax(crossing)) if np.isfinite(crossing).any() else 0.0
    core, most, shared = local or remote or _mixed(runs, measured)
    core_far, most_far, shared_far = remote or (core, most, shared)
    busiest = float(np.maximum(runs.local, runs.remote).max())
    return {
        "core_local": core,
        "core_remote": core_far,
        "comm_first": first or comm,
        "comm_second": second or comm,
        "uplink": most,
        "link": most_far,
        "controller": shared or most + comm,
        "port": shared_far or most_far + comm,
        "remote_cost": max((shared or most + comm) / (shared_far or most_far + comm), 1.0),
        "crossing": across or 1.3 * (most_far + comm),
        # Beyond what the runs ask for: only runs that show messages losing elsewhere bring it down.
        "root": 1.1 * max(most, core * busiest) + comm,
    }, tuple(flags)


def _side(
    count: Array, chosen: NDArray[np.bool_], runs: Situations, measured: Array
) -> tuple[float, float, float] | None:
    """What one core takes, what all take, and what passes together with messages in the same node (0: not
    measured), of cores of one side only.
    """
    alone = np.where(chosen, measured[0], np.nan)
    if not np.isfinite(alone).any():
        return None
    fewest = max(3.0, float(count[np.isfinite(alone)].min()))
    few = alone[(count <= fewest) & (count > 0)] / count[(count <= fewest) & (count > 0)]
    together = np.where(chosen & runs.same, measured[2] + measured[3], np.nan)
    shared = float(np.nanmax(together)) if np.isfinite(together).any() else 0.0
    return float(np.nanmedian(few)), float(np.nanmax(alone)), shared


def _mixed(runs: Situations, measured: Array) -> tuple[float, float, float]:
    """The same where both sockets computed in every run."""
    return float(np.nanmax(measured[0] / (runs.local + runs.remote))), float(np.nanmax(measured[0])), 0.0


def _middle(values: Array) -> float | None:
    known = values[np.isfinite(values)]
    return float(np.median(known)) if len(known) else None


def _first_sight(
    rows: Sequence[LoadRow], shape: Shape, size: int, intensity: float, bandwidth: float
) -> dict[str, float]:
    """The parameters that the rows tell of, but for those of message sizes, and where to begin."""
    measured = questions(rows, size, intensity)
    values: dict[str, float] = {}
    if "intensity" in measured:
        values["peak"] = _peak(rows, intensity)
        values |= {name: LOAD_CENTRES[name] for name in ("roofline", "thrift")}
    if "threads" in measured:
        values |= {name: LOAD_CENTRES[name] for name in ("thread_gain", "queueing")}
    for way in ("send", "both"):
        if way in measured:
            values |= {way: LOAD_CENTRES.get(way, 1.0), f"{way}_room": 1.0}
            for socket in _sockets(rows, shape, way):
                values |= {f"{way}_floor_{socket}": 1.0, f"{way}_cost_{socket}": 1.0}
    if "copies" in measured:
        most = max(sum(copy.demand for copy in row.load.copies) for row in rows)
        values |= dict.fromkeys(("copy_floor", "copy_weight", "copy_cost"), 1.0)
        values["devices"] = 3 * (most + bandwidth)
    return values


def _sockets(rows: Sequence[LoadRow], shape: Shape, way: str) -> list[str]:
    """Whose nodes messages of that direction were measured on beside computations."""
    nodes = {
        row.load.messages.node
        for row in rows
        if row.load.messages is not None and row.load.messages.direction == way and row.load.computing
    }
    return sorted({"first" if shape.local(node) else "second" for node in nodes})


@cache
def _kind(name: str) -> str:
    """The name that WIDTHS, CENTRES, BOUNDS and LINEAR know it by."""
    match = re.fullmatch(r"(send|both)_(floor|cost|room)(_\w+)?", name)
    if match:
        return f"way_{match[2]}"
    for kind in ("latency", "speed"):
        if name.startswith(f"{kind}_") and name not in NEUTRAL:
            return kind
    return re.sub(r"_(first|second|local|remote)$", "", name.split(" ")[0])


def _peak(rows: Sequence[LoadRow], intensity: float) -> float:
    """The most flops of a core seen, Mflop/s."""
    peaks = []
    for row in rows:
        rate = row.comp_alone if row.comp_alone is not None else row.comp_together
        groups = row.load.computing
        kinds = {group.intensity for group in groups}
        if rate is not None and len(kinds) == 1 and max(kinds) > intensity:
            peaks.append(rate * max(kinds) / sum(group.count for group in groups))
    return max(peaks, default=1e4)


def _regimes(rows: Sequence[LoadRow], size: int) -> tuple[Regime, ...]:
    """Regimes of messages alone that one thread exchanges, both directions apart; none if all have the
    calibrated size.
    """
    sizes, times = [], []
    for row in rows:
        messages = row.load.messages
        if messages is None or messages.threads > 1 or messages.direction != "receive" or row.load.copies:
            continue
        if row.comm_alone is not None:
            sizes.append(messages.size or size)
            times.append((messages.size or size) / row.comm_alone)
    if any(item != size for item in sizes):
        return regimes(sizes, times)
    others = [row.load.messages for row in rows if row.load.messages is not None]
    if any((item.size or size) != size for item in others):
        return (Regime(first=0, latency=UNSEEN_LATENCY, bandwidth=np.inf),)
    return ()


def _messages(sizes: Sequence[Regime], size: int, bandwidth: float) -> dict[str, float]:
    """Latency of every regime, and speed of every one but the calibrated size's."""
    calibrated = sum(item.first <= size for item in sizes) - 1
    values = {}
    for r, item in enumerate(sizes):
        values[f"latency_{r}"] = max(item.latency, 1e-3)
        if r != calibrated:
            values[f"speed_{r}"] = float(min(max(item.bandwidth / bandwidth, 1 / FASTEST), FASTEST))
    return values


def _factors(rows: Sequence[LoadRow]) -> tuple[str, ...]:
    kernels = {row.kernel for row in rows if row.kernel}
    patterns = {row.pattern for row in rows if row.pattern}
    return (*(KERNEL + name for name in sorted(kernels)), *(PATTERN + name for name in sorted(patterns)))
