"""The threshold model (Swartvagher 2022, chapter 6, equations 6.1-6.8; appendix D, algorithms 3-6).

A memory system carries up to T(n) while n cores compute. As long as what the cores ask for and the least
that communications are assured of fit below T(n), nobody loses but communications, which take what is left.
Beyond it communications keep `alpha` and computations the rest. One set of parameters for data local to the
computing cores, one for remote data.

Two modes. `faithful` is the thesis to the letter, algorithms before equations where they differ (the `i` of
6.5 is the last uncontended count up to n). The default mode repairs what cannot be so, and says `repaired`
where that changes a number:

- Computations alone are bounded by what they reached alone, T_seq_max, not by the threshold of both together
  (6.6 takes the latter, up to 9 % too low). From N_seq_max on each core costs delta_r alone as it does
  together: communications are at their floor there, so that loss is the cores' own (6.1.1).
- Computations together never exceed computations alone (6.3 has billy's do so): it is that bandwidth, not
  n x b_comp_seq, that must fit below T(n), and what the cores cannot use is left to communications. Neither
  do communications exceed communications alone.
- With data of computations and communications on different nodes both streams are as alone. 6.8 says so of
  computations, and 6.7 lets communications lose at the same time to cores that lose nothing and leave the
  threshold unreached: bandwidth that goes to nobody. Two nodes are two memory controllers, and there
  contention is "very low (when not null)" (6.3.3).
- T(n) has no jump when N_par_max > N_seq_max: it falls from (N_par_max, T_par_max) straight to its value with
  all cores.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from elbowroom.errors import UsageError
from elbowroom.models.curves import Shape, Situation, Streams
from elbowroom.models.load import Bands
from elbowroom.stats.interval import Interval

Floats = NDArray[np.float64]

REPAIRED = "repaired"
_SAME = 1e-9
"""Relative difference below which the two modes say the same."""


class Parameters(msgspec.Struct, frozen=True, kw_only=True):
    """One set of parameters (thesis, 6.2.1): bandwidths in MB/s, losses in MB/s per core, counts of cores.

    `n_par_max`, `t_par_max`: where both streams together peak; `n_seq_max`, `t_seq_max`: where computations
    alone do; `t_par_max2`: both streams at n_seq_max; `delta_l`, `delta_r`: lost per core between the two
    counts and beyond n_seq_max; `alpha`: what communications keep at worst (the text has it reversed).
    """

    n_par_max: int
    t_par_max: float
    n_seq_max: int
    t_seq_max: float
    t_par_max2: float
    alpha: float
    delta_l: float
    delta_r: float
    b_comp_seq: float
    b_comm_seq: float


class Threshold(msgspec.Struct, frozen=True, kw_only=True):
    """A machine's model: parameters for data local and remote to the computing cores.

    None: that placement was not measured, and is not predicted.
    """

    shape: Shape
    local: Parameters | None
    remote: Parameters | None


class Batch(NamedTuple):
    """Many sets of parameters at once, each field an array (k, 1); fields as in Parameters."""

    n_par_max: Floats
    t_par_max: Floats
    n_seq_max: Floats
    t_seq_max: Floats
    t_par_max2: Floats
    alpha: Floats
    delta_l: Floats
    delta_r: Floats
    b_comp_seq: Floats
    b_comm_seq: Floats


class Bandwidths(NamedTuple):
    """Computations alone, and both streams together, MB/s, for n = 0 .. cores; data on one node.

    Arrays (cores + 1,), or (k, cores + 1) for a batch.
    """

    comp_alone: Floats
    comp_together: Floats
    comm_together: Floats

    def streams(self, comm_alone: float | Floats) -> Floats:
        """Both alone and both together: the last axis in the order of STREAMS."""
        alone = np.broadcast_to(comm_alone, self.comp_alone.shape)
        return np.stack((self.comp_alone, alone, self.comp_together, self.comm_together), axis=-1)


def batch(sets: Sequence[Parameters]) -> Batch:
    """Those sets as one batch."""
    rows = np.array([[getattr(item, name) for name in Batch._fields] for item in sets], dtype=np.float64)
    return Batch(*(column[:, None] for column in rows.T))


def total(parameters: Parameters, ns: NDArray[np.int64], cores: int, *, faithful: bool = False) -> Floats:
    """T(n), MB/s: what the memory system carries while n of `cores` compute (equation 6.1)."""
    totals: Floats = _totals(batch((parameters,)), ns, cores, faithful)[0]
    return totals


def bandwidths(parameters: Parameters, cores: int, *, faithful: bool = False) -> Bandwidths:
    """Both streams for n = 0 .. cores, data on one node (equations 6.2-6.6, algorithm 4)."""
    return Bandwidths(*(rows[0] for rows in many(batch((parameters,)), cores, faithful=faithful)))


def _totals(p: Batch, ns: NDArray[np.int64], cores: int, faithful: bool) -> Floats:
    left = p.t_par_max - p.delta_l * (ns - p.n_par_max)
    right = p.t_par_max2 - p.delta_r * (ns - p.n_seq_max)
    capacity: Floats = np.where(ns <= p.n_par_max, p.t_par_max, np.where(ns <= p.n_seq_max, left, right))
    if faithful:
        return capacity
    last = p.t_par_max2 - p.delta_r * (cores - p.n_seq_max)
    fall = (p.t_par_max - last) / np.maximum(cores - p.n_par_max, 1)
    straight = p.t_par_max - fall * np.maximum(ns - p.n_par_max, 0)
    repaired: Floats = np.where(p.n_par_max > p.n_seq_max, straight, capacity)
    return repaired


def many(p: Batch, cores: int, *, faithful: bool = False) -> Bandwidths:
    """`bandwidths` of k sets of parameters at once: arrays (k, cores + 1)."""
    ns = np.arange(cores + 1)
    capacity = _totals(p, ns, cores, faithful)
    demand = ns * p.b_comp_seq
    if faithful:
        alone = np.minimum(np.minimum(demand, capacity), p.t_seq_max)
        wanted = demand
    else:
        own_loss = np.maximum(p.delta_r, 0.0) * np.maximum(ns - p.n_seq_max, 0)
        alone = np.maximum(np.minimum(demand, p.t_seq_max - own_loss), 0.0)
        wanted = alone
    fits = wanted + p.alpha * p.b_comm_seq < capacity
    left_over = np.minimum(capacity - wanted, p.b_comm_seq)
    comm = np.where(fits, left_over, _kept(p, ns, fits, left_over) * p.b_comm_seq)
    comp = np.where(fits, wanted, capacity - comm)
    if not faithful:
        comm = np.clip(comm, 0.0, p.b_comm_seq)
        comp = np.clip(capacity - comm, 0.0, alone)
    # Without computing cores there is nothing to share.
    alone[:, 0], comp[:, 0], comm[:, :1] = 0.0, 0.0, p.b_comm_seq
    return Bandwidths(alone, comp, comm)


def _kept(p: Batch, ns: NDArray[np.int64], fits: NDArray[np.bool_], left_over: Floats) -> Floats:
    """alpha(n) (equation 6.5): from what communications kept at the last count that fits down to alpha at
    N_seq_max, where the two peaks are more than one core apart; alpha else and beyond.
    """
    between = (ns < p.n_seq_max) & ~fits & (p.n_seq_max - p.n_par_max > 1)
    last = np.maximum.accumulate(np.where(fits, ns, 0), axis=1)
    # No count fits: the line starts at n = 0 with all of it (i = 0, alpha(0) = 1).
    kept_there = np.where(last > 0, np.take_along_axis(left_over, last, axis=1) / p.b_comm_seq, 1.0)
    slope = (kept_there - p.alpha) / np.where(between, p.n_seq_max - last, 1)
    kept: Floats = np.where(between, kept_there - slope * (ns - last), p.alpha)
    return kept


def curve(
    model: Threshold, comp_node: int, comm_node: int, ns: Sequence[int], *, faithful: bool = False
) -> Floats:
    """The four bandwidths (columns as in STREAMS, MB/s) for each n of `ns`: array (len(ns), 4).

    Raises UsageError for an n or a node outside the machine, and for nodes whose side was not calibrated.
    """
    shape = model.shape
    cores = shape.cores_first_socket
    for n in ns:
        if not 0 <= n <= cores:
            raise UsageError(
                f"is outside the model: {shape.name} has {cores} cores on its first socket",
                field="n",
                value=int(n),
                hint=f"ask for 0 to {cores}",
            )
    comp_side = side(model, comp_node, "comp_node")
    comm_side = side(model, comm_node, "comm_node")
    comp = bandwidths(comp_side, cores, faithful=faithful)
    if comp_node != comm_node:
        comm_together = np.full(cores + 1, comm_side.b_comm_seq)
        if faithful:
            mixed = _mixed(model, comm_side)
            comm_together = bandwidths(mixed, cores, faithful=True).comm_together
        comp = comp._replace(comp_together=comp.comp_alone, comm_together=comm_together)
    return comp.streams(comm_side.b_comm_seq)[np.asarray(ns, dtype=np.int64)]


def _mixed(model: Threshold, comm_side: Parameters) -> Parameters:
    """The local parameters with the communications' own bandwidth alone (equation 6.7, second case)."""
    if model.local is None:
        raise _not_calibrated(model, "local", "comp_node", 0)
    return msgspec.structs.replace(model.local, b_comm_seq=comm_side.b_comm_seq)


def predict(
    model: Threshold, situation: Situation, *, faithful: bool = False
) -> tuple[Streams, tuple[str, ...]]:
    """The four bandwidths (MB/s, in the order of STREAMS) and flags: `repaired` where the default mode says
    something else than the equations as published.

    Raises UsageError like `curve`, and for cores of the second socket, which this model does not know.
    """
    check_one_socket(situation)
    place = (model, situation.comp_node, situation.comm_node, (situation.n,))
    row = curve(*place, faithful=faithful)[0]
    streams: Streams = (float(row[0]), float(row[1]), float(row[2]), float(row[3]))
    if faithful or not repaired(*place)[0]:
        return streams, ()
    return streams, (REPAIRED,)


def check_one_socket(situation: Situation) -> None:
    """Refuses cores of the second socket, which this model does not know."""
    if situation.n_other:
        raise UsageError(
            "the threshold model knows computing cores of one socket only (thesis, 6.1.2)",
            field="n_other",
            value=situation.n_other,
            hint="predict both sockets with --model-kind flow",
        )


def repaired(model: Threshold, comp_node: int, comm_node: int, ns: Sequence[int]) -> NDArray[np.bool_]:
    """For each n whether the default mode differs from the equations as published.

    Where those cannot answer (the local side they mix in was not calibrated), it does.
    """
    default = curve(model, comp_node, comm_node, ns)
    try:
        published = curve(model, comp_node, comm_node, ns, faithful=True)
    except UsageError:
        return np.ones(len(ns), dtype=np.bool_)
    differs: NDArray[np.bool_] = np.any(np.abs(default - published) > _SAME * np.abs(published), axis=1)
    return differs


def side(model: Threshold, node: int, field: str = "node") -> Parameters:
    """The parameters for data on that node: local ones iff node < numa_per_socket."""
    shape = model.shape
    if not 0 <= node < shape.nodes:
        raise UsageError(
            f"is outside the machine: {shape.name} has {shape.nodes} NUMA nodes",
            field=field,
            value=node,
            hint=f"ask for 0 to {shape.nodes - 1}",
        )
    parameters = model.local if shape.local(node) else model.remote
    if parameters is None:
        raise _not_calibrated(model, "local" if shape.local(node) else "remote", field, node)
    return parameters


def _not_calibrated(model: Threshold, word: str, field: str, node: int) -> UsageError:
    sample = 0 if word == "local" else model.shape.numa_per_socket
    return UsageError(
        f"the model of {model.shape.name} was calibrated without {word} data",
        field=field,
        value=node,
        hint=f"measure with data of both on node {sample} too, and fit again",
    )


class ThresholdPart(msgspec.Struct, frozen=True, kw_only=True):
    """The thesis' model: parameters for data local and remote to the computing cores; None: not measured.

    `intervals`: 90 % interval of each parameter by side and name, empty for a calibration that has none;
    `bands`: by `local` and `remote` (data of both on the node that was sampled) and `other` placements;
    `bands_from`: where those come from.
    """

    local: Parameters | None
    remote: Parameters | None
    intervals: dict[str, dict[str, Interval]] = {}
    bands: dict[str, Bands] = {}
    bands_from: str = ""
    flags: tuple[str, ...] = ()

    def model(self, shape: Shape) -> Threshold:
        """The model that predicts."""
        return Threshold(shape=shape, local=self.local, remote=self.remote)
