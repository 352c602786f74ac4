"""What is believed of FLOW's parameters before the fit: centres read off the runs, wide bands, bounds.

The fit works in coordinates without units: logarithms of bandwidths and of the weight of remote cores,
log(weight + 0.1) of the weights of communication, everything else as it is.
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from elbowroom.models.flow.law import INDEX, NAMES, PARAMETERS, Array, Cases

WEIGHT_OFFSET = 0.1
_WEIGHTS = [INDEX["weight_first"], INDEX["weight_second"]]
_LOGS = [INDEX[item.name] for item in PARAMETERS if item.unit == "MB/s"] + [
    INDEX[name] for name in ("remote_weight", "remote_cost", "cost_first", "cost_second")
]

REACH = 1.5
"""Bounds of a logarithm around its centre: a factor of 4.5 either way."""

WIDTHS = {
    "core_local": 0.3,
    "core_remote": 0.3,
    "comm_first": 0.5,
    "comm_second": 0.5,
    "uplink": 0.3,
    "link": 0.3,
    "controller": 0.3,
    "port": 0.3,
    "crossing": 0.4,
    "root": 0.4,
    "floor_first": 0.3,
    "floor_second": 0.3,
    "weight_first": 1.5,
    "weight_second": 1.5,
    "cost_first": 0.3,
    "cost_second": 0.3,
    "remote_weight": 0.5,
    "remote_cost": 0.4,
    "dip_local": 0.05,
    "dip_remote": 0.05,
    "rise_local": 0.3,
    "rise_remote": 0.3,
    "excess_local": 0.1,
    "excess_remote": 0.1,
}
"""Standard deviations of the priors, in the fit's coordinates."""

CENTRES = {
    "floor_first": 0.7,
    "floor_second": 0.7,
    "weight_first": 1.0,
    "weight_second": 1.0,
    "cost_first": 1.0,
    "cost_second": 1.0,
    "remote_weight": 1.0,
    "dip_local": 0.03,
    "dip_remote": 0.03,
    "rise_local": 0.03,
    "rise_remote": 0.03,
    "excess_local": 0.0,
    "excess_remote": 0.0,
}
BOUNDS = {
    "floor_first": (0.0, 1.0),
    "floor_second": (0.0, 1.0),
    "weight_first": (float(np.log(WEIGHT_OFFSET)), float(np.log(50))),
    "weight_second": (float(np.log(WEIGHT_OFFSET)), float(np.log(50))),
    "dip_local": (0.0, 0.3),
    "dip_remote": (0.0, 0.3),
    "rise_local": (0.0, 0.9),
    "rise_remote": (0.0, 0.9),
    "excess_local": (-0.05, 0.6),
    "excess_remote": (-0.05, 0.6),
}
_THESIS = {"floor_first": 0.9, "floor_second": 0.9, "weight_first": 0.05, "weight_second": 0.05}
"""Communication loses down to a high floor, knees are sharp."""
_PROPORTION = {"floor_first": 0.2, "floor_second": 0.2, "weight_first": 4.0, "weight_second": 4.0}
"""Everything is shared out in proportion."""
_SOFT = {"dip_local": 0.05, "dip_remote": 0.05, "rise_local": 0.3, "rise_remote": 0.3}
STARTS: tuple[dict[str, float], ...] = (
    {},
    _THESIS | {"root": 0.65},
    _PROPORTION | {"dip_local": 0.1, "dip_remote": 0.1},
    _PROPORTION | _SOFT | {"crossing": 0.9},
    _THESIS | {"crossing": 0.9, "root": 0.8},
    _THESIS | {"crossing": 0.9, "root": 0.5},
    _SOFT | {"cost_first": 1.5, "cost_second": 1.5, "root": 0.65},
)
"""Where the fit starts, beside the centres; of bandwidths, the factor on the centre."""


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
        """Of these coordinates, then the other's."""
        return Prior(
            names=(*self.names, *other.names),
            centre=np.concatenate([self.centre, other.centre]),
            width=np.concatenate([self.width, other.width]),
            low=np.concatenate([self.low, other.low]),
            high=np.concatenate([self.high, other.high]),
        )


def encode(parameters: Array) -> Array:
    """Parameters (..., P) to coordinates."""
    coordinates = np.array(parameters, dtype=float)
    coordinates[..., _LOGS] = np.log(coordinates[..., _LOGS])
    coordinates[..., _WEIGHTS] = np.log(coordinates[..., _WEIGHTS] + WEIGHT_OFFSET)
    return coordinates


def decode(coordinates: Array) -> Array:
    """Coordinates (..., P) to parameters."""
    parameters = np.array(coordinates, dtype=float)
    parameters[..., _LOGS] = np.exp(parameters[..., _LOGS])
    parameters[..., _WEIGHTS] = np.maximum(np.exp(parameters[..., _WEIGHTS]) - WEIGHT_OFFSET, 0.0)
    return parameters


def prior(runs: Cases, measured: Array) -> Prior:
    """From the runs' bandwidths (4, S), NaN where not known; at least one of either stream is.

    Where a stream was not measured alone, what it got together is taken for the first sight.
    """
    comp, comm = (np.where(np.isfinite(measured[k]), measured[k], measured[k + 2]) for k in (0, 1))
    sights, flags = _sights(runs, np.stack([comp, comm, measured[2], measured[3]]))
    values = CENTRES | sights
    centre = encode(np.array([values[name] for name in NAMES]))
    bounds = [BOUNDS.get(name, (centre[i] - REACH, centre[i] + REACH)) for i, name in enumerate(NAMES)]
    return Prior(
        names=NAMES,
        centre=centre,
        width=np.array([WIDTHS[name] for name in NAMES]),
        low=np.array([low for low, _ in bounds]),
        high=np.array([high for _, high in bounds]),
        starts=tuple(encode(np.array([(values | start)[name] for name in NAMES])) for start in STARTS),
        flags=flags,
    )


def _sights(runs: Cases, measured: Array) -> tuple[dict[str, float], tuple[str, ...]]:
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
    count: Array, chosen: NDArray[np.bool_], runs: Cases, measured: Array
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


def _mixed(runs: Cases, measured: Array) -> tuple[float, float, float]:
    """The same where both sockets computed in every run."""
    return float(np.nanmax(measured[0] / (runs.local + runs.remote))), float(np.nanmax(measured[0])), 0.0


def _middle(values: Array) -> float | None:
    known = values[np.isfinite(values)]
    return float(np.median(known)) if len(known) else None
