"""How far FLOW predicts a real machine's message sizes and intensities from every second one.

    python benchmarks/extended_real.py [RUN ...] [--save FILE] [--json]

RUN: runs of one machine, of the plans `sizes` and `intensity`, or a file that --save wrote. Without any:
those of a virtual machine with two cores, docs/measured/two-core-vm-loads.json. The points of each plan are
put in the order of their axis, message size or repetitions per item (cursor). FLOW is fitted to every second
one of both plans at once, asked for the others, and the other way round. Errors are means over the points
asked of |measured - predicted| / measured in percent, all as bandwidths. Beside it, from the same half,
without contention, since a sensible person would try them first:

- constant: medians, of computation, of the duration of messages below 64 KiB, of the bandwidth of others;
- roofline: cores the least of their bandwidth and their peak, messages t0 + s/B, from both plans;
- nearest: what was measured at the nearest value of the axis;
- between: on a line between the two neighbours, logarithms of axis and bandwidth.

`noise` is what a second measurement of the same points would be off by: two standard errors of the medians,
from their bootstrap intervals.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import mean, median
from typing import Any, Literal

import msgspec
from command import Command

from elbowroom import open as open_run
from elbowroom.errors import UsageError
from elbowroom.machine.topology import Machine
from elbowroom.models.base import Provenance
from elbowroom.models.curves import STREAMS
from elbowroom.models.fit import fit as fit_document
from elbowroom.models.message_size import MessageBandwidth
from elbowroom.models.message_size import fit as fit_sizes
from elbowroom.models.predict import FittedModel
from elbowroom.models.run_data import NORMAL_95, Base, Setting, collect, load_rows
from elbowroom.results.result import PointResult
from elbowroom.stats.interval import Summary

MEASURED = Path(__file__).parent.parent / "docs" / "measured" / "two-core-vm-loads.json"
STATE = ("architecture", "cpu_model", "hypervisor", "smt", "transparent_huge_pages", "clocksource")
DIGITS = 6

Axis = Literal["size", "cursor"]
Values = tuple[float, float, float, float]
Predictor = Callable[[Sequence[PointResult]], Sequence[Values]]


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """A run without its samples; `cores`: computing cores by point."""

    plan: str
    created: str
    machine: Machine
    state: Mapping[str, Any]
    points: tuple[PointResult, ...]
    cores: Mapping[str, tuple[int, ...]]

    @property
    def axis(self) -> Axis:
        """What varies: the repetitions per item, or else the message size."""
        return "cursor" if len({item.cursor for item in self.points}) > 1 else "size"


def values(item: PointResult) -> Values:
    """The four bandwidths in the order of STREAMS, MB/s; a latency is half a round trip, in us."""

    def of(summary: Summary | None) -> float:
        assert summary is not None
        return item.size / summary.median if summary.unit == "us" else summary.median

    return of(item.comp.alone), of(item.comm.alone), of(item.comp.together), of(item.comm.together)


def read(paths: Sequence[Path]) -> list[Measured]:
    found: list[Measured] = []
    for path in paths:
        if path.is_file():
            found += msgspec.json.decode(path.read_bytes(), type=list[Measured])
        else:
            found.append(of_run(path))
    machines = {item.machine.name for item in found}
    if len(machines) > 1:
        raise UsageError("are runs of several machines", field="run", value=", ".join(sorted(machines)))
    return found


def of_run(path: Path) -> Measured:
    run = open_run(path)
    state = run.manifest.state
    usable = [item for item in run.points() if item.status == "ok" and item.role == "point"]
    return Measured(
        plan=str(run.manifest.plan["name"]),
        created=run.manifest.created,
        machine=run.machine,
        state={
            **{key: state["before"][key] for key in STATE},
            "others_busy": {when: round(found["others_busy"], 3) for when, found in state.items()},
        },
        points=tuple(usable),
        cores={item.id: point.comp_cores for item, point in _pairs(usable, run.manifest.points)},
    )


def _pairs(items: Sequence[PointResult], points: Sequence[Any]) -> list[tuple[PointResult, Any]]:
    by_id = {point.id: point for point in points}
    return [(item, by_id[item.id]) for item in items]


def save(path: Path, runs: Sequence[Measured]) -> None:
    """Numbers to DIGITS, and nothing that is as if not said or follows from the rest."""
    plain = {
        field.name: field.default
        for field in msgspec.structs.fields(PointResult)
        if field.default is not msgspec.NODEFAULT
    }
    left_out = {"kept", "refused", "frequency_ranges"}

    def short(value: Any) -> Any:
        if isinstance(value, dict):
            kept = {key: short(item) for key, item in value.items() if key not in plain or item != plain[key]}
            return {
                key: item for key, item in kept.items() if item not in (None, [], {}) and key not in left_out
            }
        if isinstance(value, list | tuple):
            return [short(item) for item in value]
        return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value

    text = json.dumps(short(msgspec.to_builtins(runs)), separators=(",", ":"))
    path.write_text(text.replace('{"plan"', '\n{"plan"') + "\n", encoding="utf-8")


def halves(run: Measured) -> tuple[tuple[PointResult, ...], tuple[PointResult, ...]]:
    """Points by every second value of the axis, and the others."""
    steps = sorted({getattr(item, run.axis) for item in run.points})
    chosen = set(steps[::2])
    first = tuple(item for item in run.points if getattr(item, run.axis) in chosen)
    return first, tuple(item for item in run.points if item not in first)


def constant(known: Sequence[PointResult]) -> Predictor:
    """Medians of the plan: of small messages the duration (metric latency), of large ones the bandwidth."""

    def answer(item: PointResult) -> Values:
        alike = [other for other in known if other.metric == item.metric]
        scale = [item.size / other.size if item.metric == "latency" else 1.0 for other in alike]
        comp, comm = (
            median(values(other)[0] for other in known),
            median(values(other)[1] * factor for other, factor in zip(alike, scale, strict=True)),
        )
        return comp, comm, comp, comm

    return lambda asked: [answer(item) for item in asked]


def roofline(known: Sequence[PointResult]) -> Predictor:
    core = max(values(item)[0] / item.n for item in known)
    peak = max(values(item)[0] / item.n * (item.arithmetic_intensity or 0.0) for item in known)
    law = fit_sizes([MessageBandwidth(node=0, size=item.size, bandwidth=values(item)[1]) for item in known])
    largest = max(item.size for item in known)
    most = median(values(item)[1] for item in known if item.size == largest)

    def answer(item: PointResult) -> Values:
        intensity = item.arithmetic_intensity or 0.0
        comp = item.n * min(core, peak / intensity if intensity else core)
        comm = law.bandwidth(item.size, known=most, at=largest)
        return comp, comm, comp, comm

    return lambda asked: [answer(item) for item in asked]


def nearest(axis: Axis) -> Callable[[Sequence[PointResult]], Predictor]:
    """The values of the measured point whose axis is nearest, by ratio, of the same metric and other axis."""

    def fit(known: Sequence[PointResult]) -> Predictor:
        return lambda asked: [
            values(min(_alike(known, item, axis), key=lambda other, to=item: _apart(other, to, axis)))
            for item in asked
        ]

    return fit


def between(axis: Axis) -> Callable[[Sequence[PointResult]], Predictor]:
    """Interpolated between the neighbours, logarithms of both; beyond the ends the nearest."""

    def answer(known: Sequence[PointResult], item: PointResult) -> Values:
        at = math.log(getattr(item, axis))
        places = sorted(
            (math.log(getattr(other, axis)), values(other)) for other in _alike(known, item, axis)
        )
        below = [place for place in places if place[0] <= at] or places[:1]
        above = [place for place in places if place[0] >= at] or places[-1:]
        (low, before), (high, after) = below[-1], above[0]
        share = (at - low) / (high - low) if high > low else 0.0
        a, b, c, d = (x ** (1 - share) * y**share for x, y in zip(before, after, strict=True))
        return a, b, c, d

    return lambda known: lambda asked: [answer(known, item) for item in asked]


def _apart(item: PointResult, other: PointResult, axis: Axis) -> float:
    return abs(math.log(getattr(item, axis) / getattr(other, axis)))


def _alike(known: Sequence[PointResult], item: PointResult, axis: Axis) -> list[PointResult]:
    """Points that differ along the axis only: of the same message size, where that is not the axis."""
    return [other for other in known if axis == "size" or other.size == item.size]


def flow(known: Sequence[PointResult], cores: Mapping[str, tuple[int, ...]], machine: Machine) -> Predictor:
    """FLOW, fitted as `elbowroom fit` fits several runs."""
    found = collect(known, cores, machine)
    source = Provenance(
        nodes=found.layout.nodes,
        sizes=found.sizes,
        loads=found.loads,
        intensity=found.intensity,
        pattern=found.pattern,
    )
    document = fit_document(found.curves, source, created="")
    calibrated = next(item for item in known if item.id == found.curves.rows[0].source)
    setting = Setting(
        **{field.name: getattr(calibrated, field.name) for field in msgspec.structs.fields(Setting)}
    )
    base = Base(setting=setting, layout=found.layout)

    def answer(asked: Sequence[PointResult]) -> list[Values]:
        rows, left_out = load_rows(asked, cores, base, frozenset())
        assert not left_out, left_out
        said = FittedModel(document).predict_loads([row.load for row in rows])
        found = []
        for one, row, item in zip(said, rows, asked, strict=True):
            # From the calibrated kernel's bytes to the point's own.
            scale = values(item)[0] / (row.comp_alone or 1.0)
            a, b, c, d = (getattr(one, stream).value for stream in STREAMS)
            found.append((a * scale, b, c * scale, d))
        return found

    return answer


def score(
    run: Measured,
    asked: Sequence[PointResult],
    known: Sequence[PointResult],
    of_all: Mapping[str, Predictor],
) -> dict[str, list[float]]:
    """Mean error in percent of every stream, by model, of the points asked; `known`: the run's other half."""
    models: dict[str, Predictor] = {
        **of_all,
        "constant": constant(known),
        "nearest": nearest(run.axis)(known),
        "between": between(run.axis)(known),
    }
    true = [values(item) for item in asked]
    found = {}
    for name, model in models.items():
        said = model(asked)
        found[name] = [
            100 * mean(abs(one[k] - other[k]) / other[k] for one, other in zip(said, true, strict=True))
            for k in range(len(STREAMS))
        ]
    found["noise"] = [100 * mean(noise(item, stream) for item in asked) for stream in STREAMS]
    return found


def noise(item: PointResult, stream: str) -> float:
    """What a second measurement is off by on average: two normal errors, mean of the absolute difference."""
    side, when = stream.split("_")
    summary = getattr(getattr(item, side), when)
    error = (summary.high - summary.low) / (2 * NORMAL_95 * summary.median)
    return error * math.sqrt(2) * math.sqrt(2 / math.pi)


def main() -> None:
    parser = Command((__doc__ or "").splitlines()[0], smoke="--halves 1")
    parser.add_argument("runs", nargs="*", type=Path, metavar="RUN")
    parser.add_argument("--save", type=Path, metavar="FILE")
    parser.add_argument("--halves", type=int, choices=[1, 2], default=2, help="that are predicted")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    runs = read(options.runs or [MEASURED])
    if options.save:
        save(options.save, runs)
    cores = {key: found for run in runs for key, found in run.cores.items()}
    found: dict[str, list[dict[str, list[float]]]] = {run.plan: [] for run in runs}
    for first, second in ((0, 1), (1, 0))[: options.halves]:
        every = [item for run in runs for item in halves(run)[first]]
        of_all = {"FLOW": flow(every, cores, runs[0].machine), "roofline": roofline(every)}
        for run in runs:
            found[run.plan].append(score(run, halves(run)[second], halves(run)[first], of_all))
    tables = {
        plan: {
            name: [mean(pair) for pair in zip(*(half[name] for half in both), strict=True)]
            for name in both[0]
        }
        for plan, both in found.items()
    }
    if options.json:
        print(json.dumps(tables))
        return
    for plan, table in tables.items():
        print(f"\n| {plan}, every second point from the others | " + " | ".join(STREAMS) + " | mean |")
        print("|---" * (len(STREAMS) + 2) + "|")
        for name, errors in table.items():
            print(f"| {name} | " + " | ".join(f"{error:.2f}" for error in (*errors, mean(errors))) + " |")


if __name__ == "__main__":
    main()
