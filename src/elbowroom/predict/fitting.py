"""From curves to the document M.json: every model that they allow, and where not to trust it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import numpy as np

from elbowroom import __version__
from elbowroom.errors import UsageError
from elbowroom.model import flow_fit, flow_load_fit, published, threshold_fit
from elbowroom.model.curves import STREAMS, Curves, Row
from elbowroom.model.document import Bands, Calibration, Document, FlowPart, Models, Origin, ThresholdPart
from elbowroom.model.flow import NAMES
from elbowroom.model.flow_load_prior import questions
from elbowroom.model.load import LoadRow
from elbowroom.model.message_size import MessageSize, Observation
from elbowroom.model.prediction import NORMAL_90
from elbowroom.model.threshold import Threshold, curve
from elbowroom.plan.sizes import format_size
from elbowroom.predict.sizing import law

FROM_TABLE = "published mean error"
FROM_CALIBRATION = "calibration residuals"


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """Where curves come from: what Calibration says and the curves do not. `doubts`: why the run itself is
    not trusted; `sizes`: messages alone, of all sizes; `loads`: runs of other loads than situations;
    `intensity` (flop/B), `pattern`, `with_runs`: as Collected and Calibration have them.
    """

    run: str = ""
    plan: str = ""
    origin: Origin = "measured"
    nodes: tuple[int, ...] = ()
    left_out: dict[str, int] = {}
    doubts: tuple[str, ...] = ()
    sizes: tuple[Observation, ...] = ()
    loads: tuple[LoadRow, ...] = ()
    intensity: float = 0.0
    pattern: str = "receive"
    with_runs: tuple[str, ...] = ()


def fit(curves: Curves, source: Source, *, created: str) -> Document:
    """Fits every model that the curves allow; what cannot be fitted is said in `validity`.

    Raises UsageError, that of the first model, where none can be fitted.
    """
    parts: dict[str, ThresholdPart] = {}
    refused: dict[str, UsageError] = {}
    for name, method in (("threshold", "thesis"), ("robust", "robust")):
        try:
            found = threshold_fit.fit(curves, "thesis" if method == "thesis" else "robust")
        except UsageError as error:
            refused[name] = error
            continue
        parts[name] = _part(found, curves)
    flow = None
    try:
        flow = _flow_part(curves, source)
    except UsageError as error:
        refused["flow"] = error
    if not parts and flow is None:
        raise next(iter(refused.values()))
    calibration = _calibration(curves, source)
    models = Models(threshold=parts.get("threshold"), robust=parts.get("robust"), flow=flow)
    sizes = law(source.sizes)
    doubts = validity(curves, calibration, models, refused, source.doubts)
    return Document(
        elbowroom=__version__,
        created=created,
        machine=curves.shape,
        calibration=calibration,
        models=models,
        validity=(*doubts, *_loads(models, calibration, sizes)),
        message_size=sizes,
    )


def _calibration(curves: Curves, source: Source) -> Calibration:
    at = [row.situation for row in curves.rows]
    counts = [item.n for item in at if item.n] or [0]
    loads = [row.load for row in source.loads]
    others = [group.count for load in loads for group in load.computing if group.socket == 1]
    places = {
        (group.node, load.messages.node)
        for load in loads
        for group in load.computing
        if load.messages is not None
    }
    return Calibration(
        run=source.run,
        plan=source.plan,
        origin=source.origin,
        kernel=curves.kernel,
        size=curves.size,
        runs=len(curves.rows),
        n_low=min(counts),
        n_high=max(counts),
        n_other_high=max([*others, *(item.n_other for item in at)]),
        placements=tuple(sorted(places | {(item.comp_node, item.comm_node) for item in at})),
        nodes=source.nodes,
        left_out=source.left_out,
        pattern=source.pattern,
        with_runs=source.with_runs,
    )


def _part(found: threshold_fit.Fitted, curves: Curves) -> ThresholdPart:
    bands = dict(found.bands)
    other = _other_band(found.model, curves)
    if other is not None:
        bands["other"] = other
    return ThresholdPart(
        local=found.model.local,
        remote=found.model.remote,
        intervals=found.intervals,
        bands=bands,
        bands_from=FROM_CALIBRATION,
        flags=found.flags,
    )


def _flow_part(curves: Curves, source: Source) -> FlowPart:
    """FLOW, where there are at least as many measured bandwidths as it has parameters, with what other loads
    tell; their bandwidths count where they tell of something.
    """
    own = sum(value is not None for row in curves.rows for value in row.streams)
    others = sum(value is not None for row in source.loads for value in row.streams)
    told = bool(questions(source.loads, curves.size, source.intensity))
    values = own + others if told else own
    if values < len(NAMES):
        raise UsageError(
            f"{values} measured bandwidths are fewer than the {len(NAMES)} parameters of FLOW",
            field="rows",
            value=len(curves.rows),
            mend=f"measure at least {-(-len(NAMES) // len(STREAMS))} runs with all four bandwidths",
        )
    found, load = flow_fit.fit(curves), None
    more = flow_load_fit.fit(found, curves, source.loads, intensity=source.intensity)
    if more is not None:
        found, load = more.flow, more.load
    return FlowPart(
        names=found.names,
        values=found.values,
        low=found.low,
        high=found.high,
        draws=found.draws,
        discrepancy=found.discrepancy,
        flags=found.flags,
        load=load,
    )


def _other_band(model: Threshold, curves: Curves) -> Bands | None:
    """Relative half-widths that hold 90 % of what was measured with data elsewhere than where the model was
    calibrated; None where nothing was.
    """
    shape = model.shape
    samples = {(0, 0), (shape.numa_per_socket, shape.numa_per_socket)}
    places: dict[tuple[int, int], list[Row]] = {}
    for row in curves.rows:
        at = row.situation
        place = (at.comp_node, at.comm_node)
        sides = {shape.local(node) for node in place}
        known = (model.local or True not in sides) and (model.remote or False not in sides)
        if place not in samples and at.n and not at.n_other and known:
            places.setdefault(place, []).append(row)
    off: list[np.ndarray[tuple[int, int], np.dtype[np.float64]]] = []
    for (comp, comm), rows in places.items():
        said = curve(model, comp, comm, [row.situation.n for row in rows])
        measured = np.array([row.streams for row in rows], dtype=np.float64)
        off.append(np.abs(said / measured - 1))
    if not off:
        return None
    table = np.concatenate(off)
    widths = [column[np.isfinite(column)] for column in table.T]
    if not all(len(column) for column in widths):
        return None
    found = [float(np.quantile(column, 0.9, method="higher")) for column in widths]
    return found[0], found[1], found[2], found[3]


def of_published(name: str) -> Document:
    """A machine of the thesis as a document: appendix E's parameters, intervals from Table 6.1.

    Errors are taken as normal, so that a mean error e means a half-width of 1.645 sqrt(pi / 2) e.
    """
    machine = published.load(name)
    model = machine.model

    def width(percent: float) -> float:
        return NORMAL_90 * math.sqrt(math.pi / 2) * percent / 100

    comp, comm = machine.errors.comp, machine.errors.comm
    sample, other = (
        (width(on_comp), width(on_comm), width(on_comp), width(on_comm))
        for on_comp, on_comm in ((comp.samples, comm.samples), (comp.non_samples, comm.non_samples))
    )
    nodes = range(machine.shape.nodes)
    calibration = Calibration(
        run=f"thesis of P. Swartvagher (2022), Table {machine.table}",
        plan="",
        origin="published",
        kernel="memset_nt",
        size=64_000_000,
        runs=0,
        n_low=1,
        n_high=machine.cores_first_socket,
        placements=tuple((i, j) for i in nodes for j in nodes),
    )
    part = ThresholdPart(
        local=model.local,
        remote=model.remote,
        bands={"local": sample, "remote": sample, "other": other},
        bands_from=FROM_TABLE,
    )
    corrections = [
        f"{item.placement} {item.parameter} is {item.used:g}, not {item.printed:g} as printed: {item.reason}"
        for item in machine.corrections
    ]
    return Document(
        elbowroom=__version__,
        created="",
        machine=machine.shape,
        calibration=calibration,
        models=Models(threshold=part),
        validity=(_benchmark(calibration), *machine.notes, *corrections),
    )


EXPLAINED = {
    "not_measured": "its data was not measured, and is not predicted",
    "too_few_counts": "its data was measured at too few numbers of cores, and is not predicted",
    "one_core": "one core alone says nothing of a threshold",
    "no_contention": "nothing was lost at any n, so its capacity is only known to be at least that much",
    "n_par_above_n_seq": "both streams together peak at more cores than computations alone do",
    "negative_slope": "more cores get more bandwidth where the model expects less",
    "unstable_network": "communications alone vary with n, which no model here follows",
    "missing_counts": "some numbers of cores were not measured: the true peaks may lie between",
    "interpolated": "both streams at the peak of computations alone were not measured but interpolated",
}


def validity(
    curves: Curves,
    calibration: Calibration,
    models: Models,
    refused: dict[str, UsageError],
    doubts: Sequence[str] = (),
) -> list[str]:
    """Where not to trust the models, one sentence each."""
    shape = curves.shape
    found = [_benchmark(calibration)]
    if calibration.origin == "virtual":
        found.append("Virtual: the values come from a simulated machine, not from a real one.")
    elif calibration.origin == "imported":
        found.append("Imported: how the values were measured, and in what state the machine was, is unknown.")
    elif doubts:
        found.append(f"The run itself is doubtful: {doubts[0]}")
    if calibration.n_high < shape.cores_first_socket:
        found.append(
            f"Measured with {calibration.n_low} to {calibration.n_high} computing cores; other numbers are "
            "extrapolated."
        )
    if shape.sockets > 1 and not calibration.n_other_high:
        found.append("Both sockets computing at once was not measured: that is extrapolated.")
    found += [f"{name}: not fitted, since {error.sentence()}" for name, error in refused.items()]
    for name in ("threshold", "robust"):
        part: ThresholdPart | None = getattr(models, name)
        for flag in part.flags if part is not None else ():
            side, _, word = flag.partition(":")
            found.append(f"{name}, {side}: {EXPLAINED.get(word, word.replace('_', ' '))}.")
    found += [f"flow: {flag}." for flag in (models.flow.flags if models.flow is not None else ())]
    return found


def _loads(models: Models, calibration: Calibration, sizes: MessageSize | None) -> list[str]:
    """What was learned beyond situations, and from how little."""
    found = []
    load = models.flow.load if models.flow is not None else None
    if load is not None:
        told = {
            "intensity": f"arithmetic intensities up to {load.intensity_high:g} flop/B",
            "sizes": f"messages of {format_size(load.size_low)} to {format_size(load.size_high)}",
            "send": "sending",
            "both": "both directions at once",
            "threads": "several communication threads",
            "copies": "accelerators' copies",
            "nodes": "cores of one socket on several nodes",
        }
        what = ", ".join(told[item] for item in load.measured)
        found.append(f"flow: other loads from {load.runs} runs ({what}); what they did not show is marked.")
    if calibration.pattern != "receive":
        found.append(
            f"Messages were exchanged by {calibration.pattern}: receiving and sending are not told apart."
        )
    by_law = models.threshold is not None or models.robust is not None
    if sizes is not None and (by_law or load is None or "sizes" not in load.measured):
        found.append(_other_sizes(sizes))
    return found


def _other_sizes(found: MessageSize) -> str:
    return (
        f"Where only messages alone tell of other sizes they follow t0 + s/B, t0 = {found.t0:.3g} us, which "
        f"misses the bandwidths alone of {len(found.sizes)} sizes by {found.misfit:.1%} on average; beside "
        "computations it is not checked."
    )


def _benchmark(calibration: Calibration) -> str:
    return (
        f"For {calibration.kernel} beside messages of {format_size(calibration.size)}: other kernels and "
        "sizes share differently."
    )
