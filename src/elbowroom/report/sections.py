"""The report's sections on fitted models (figures, errors, parameters, sliders), and on a job: its advice,
and where it lies on the contention maps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from elbowroom import quantities
from elbowroom.advise.advice import Advice, Choice, Configuration
from elbowroom.advise.contention_map import ContentionMap, Spot
from elbowroom.advise.job import Setup
from elbowroom.draw.figure import Figure
from elbowroom.models.document import Document
from elbowroom.models.evaluate import Errors, ErrorTable, ModelErrors
from elbowroom.models.flow.law import PARAMETERS
from elbowroom.models.gpu.part import FamilyErrors, GpuPart
from elbowroom.models.registry import MODELS, fitted_models
from elbowroom.models.threshold.law import ThresholdPart
from elbowroom.quantities import format_size, number, percent, plural, short_time, with_span
from elbowroom.stats.interval import Interval

AXES = {
    "cores": "computing cores",
    "cores_other": "computing cores of the second socket",
    "comp_node": "NUMA node of the computation's data",
    "comp_node_other": "NUMA node of the second socket's data",
    "comm_node": "NUMA node of the messages",
    "comm_socket": "socket of the communication threads",
    "comm_threads": "communication threads",
    "size": "message size",
    "overlap": "overlap",
    "w": "accelerators' share of the work",
    "nodes": "nodes",
    "form": "form of the collective",
    "progress": "progress of the collective",
}
"""Names of a setup's fields on the page, in the order of its table."""
ALWAYS = ("cores", "comp_node", "comm_node", "size", "comm_threads", "overlap")
"""Fields that are shown even with their default value."""


class JobSection(msgspec.Struct, frozen=True, kw_only=True):
    """A job in the page: `model` is the file that predicts; `maps` and their `figures`; `notes`: limits."""

    model: str
    advice: Advice
    maps: tuple[ContentionMap, ...]
    figures: tuple[Figure, ...]
    notes: tuple[str, ...] = ()


def job_view(part: JobSection) -> dict[str, Any]:
    """The template's view of a job."""
    advice = part.advice
    spots = {spot.name: spot for chart in part.maps for spot in chart.spots}
    changed = bool(advice.changes)
    columns = [advice.now, advice.advised] if changed else [advice.now]
    there = [spots["now"], spots.get("advised", spots["now"])][: len(columns)]
    return {
        "name": advice.job.name,
        "machine": advice.machine.name,
        "virtual": advice.machine.virtual,
        "model": part.model,
        "word": "Advice" if changed else "No advice",
        "kind": "neutral" if changed else "quiet",
        "sentence": advice.sentence,
        "standing": [_standing(spot) for spot in there],
        "heads": ["now", "advised"][: len(columns)],
        "setup": _setup_rows(advice, there),
        "step": _step_rows(columns, there),
        "gain": (percent(advice.gain.value), f"({_between(advice.gain, percent)})") if changed else None,
        "choices": [_choice(choice) for choice in advice.choices],
        "considered": advice.considered,
        "left_out": [f"{count} ({reason})" for reason, count in advice.left_out.items()],
        "notes": (*part.notes, *advice.notes),
    }


def _standing(spot: Spot) -> str:
    """The job's place on the map and its losses, in a sentence."""
    cores = plural(spot.count, "computing core")
    if spot.setup.cores_other and spot.setup.cores and spot.count == spot.setup.cores:
        cores += f" and {spot.setup.cores_other} of the second socket"
    where = f"{spot.name}: {cores} beside messages of {format_size(spot.size)}: {spot.loses}"
    if not spot.setup.overlap:
        return f"{where}."
    comm, comp = (_lost(kept) for kept in (spot.kept_comm, spot.kept_comp))
    return f"{where}; communication loses {comm}, computation {comp}."


def _lost(kept: Interval) -> str:
    return quantities.percent_span(1 - kept.value, 1 - kept.high, 1 - kept.low)


def _kept(interval: Interval) -> str:
    return quantities.interval(interval.value, interval.low, interval.high)


def _between(interval: Interval, text: Callable[[float], str]) -> str:
    return f"{text(interval.low)} to {text(interval.high)}"


def _setup_rows(advice: Advice, columns: Sequence[Spot]) -> list[dict[str, Any]]:
    rows = []
    default = {field.name: field.default for field in msgspec.structs.fields(Setup)}
    for axis, name in AXES.items():
        values = [getattr(column.setup, axis) for column in columns]
        if axis not in ALWAYS and all(value == default[axis] for value in values):
            continue
        rows.append(
            {
                "name": name,
                "cells": [(value_text(axis, value), "") for value in values],
                "changed": len(set(values)) > 1,
                "may": getattr(advice.job.may, axis) is not None,
            }
        )
    return rows


def value_text(axis: str, value: Any) -> str:
    """The value of a setup's field as text."""
    if axis == "overlap":
        return "yes" if value else "no"
    if axis == "size":
        return "as in the model" if value is None else format_size(value)
    if axis == "comm_socket" and value is None:
        return "the last"
    if axis == "comp_node_other" and value is None:
        return "as for the first socket"
    return number(value) if isinstance(value, float) else str(value)


def _step_rows(columns: Sequence[Configuration], spots: Sequence[Spot]) -> list[dict[str, Any]]:
    """The predicted step: times alone, losses, and its time."""

    def row(name: str, cells: Sequence[str]) -> dict[str, Any]:
        return {"name": name, "cells": [_cell(cell) for cell in cells], "total": False}

    rows = []
    if any(column.separator for column in columns):
        rows.append(row("separator, before the communication", [short_time(c.separator) for c in columns]))
    rows += [
        row("computation alone, T_M", [short_time(column.t_comp) for column in columns]),
        row("communication alone, T_N", [short_time(column.t_comm) for column in columns]),
        row("loss ratio of the computation, L_M", [_loss(column, column.l_comp) for column in columns]),
        row("loss ratio of the communication, L_N", [_loss(column, column.l_comm) for column in columns]),
        row("kept by computation", [_kept(s.kept_comp) if s.setup.overlap else "all" for s in spots]),
        row("kept by communication", [_kept(s.kept_comm) if s.setup.overlap else "all" for s in spots]),
    ]
    if any(column.collective for column in columns):
        rows.append(row("collective, exposed", [short_time(column.collective) for column in columns]))
    if any(column.t_acc for column in columns):
        rows.append(row("accelerators", [short_time(column.t_acc) for column in columns]))
    totals = [
        f"{short_time(column.total.value)} ({_between(column.total, short_time)})" for column in columns
    ]
    return [*rows, {**row("time of a step", totals), "total": True}]


def _cell(text: str) -> tuple[str, str]:
    """A value and its interval, if it has one."""
    value, space, rest = text.partition(" [" if " [" in text else " (")
    return value, f"{space.strip()}{rest}"


def _loss(column: Configuration, ratio: float) -> str:
    return f"{ratio:.2f}" if column.setup.overlap else "none without overlap"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _choice(choice: Choice) -> dict[str, Any]:
    """One of the job's choices: its value, the reason, and the gain."""
    changed = choice.now != choice.advised
    worth = []
    if changed and choice.alone is not None:
        worth.append(
            f"This change alone gains {percent(choice.alone.value)} ({_between(choice.alone, percent)})"
        )
    if changed and choice.back is not None:
        along = f" (with {', '.join(AXES[axis] for axis in choice.goes_with)})" if choice.goes_with else ""
        lost = f"{percent(choice.back.value)} ({_between(choice.back, percent)})"
        worth.append(f"undoing it{along} would lose {lost}")
    now, advised = (value_text(choice.axis, value) for value in (choice.now, choice.advised))
    return {
        "name": AXES[choice.axis],
        "value": f"{now} → {advised}" if changed else now,
        "word": "change" if changed else "stays",
        "changed": changed,
        "reason": _sentence(choice.reason.removeprefix("stays: ")),
        "worth": "; ".join(worth),
    }


ORIGINS = {
    "virtual": "virtual: fitted to values of a simulated machine",
    "imported": "imported: fitted to values measured with another program",
    "published": "published: parameters from the thesis",
}
MEANINGS = {
    "b_comp_seq": ("MB/s", "memory bandwidth of one computing core alone"),
    "b_comm_seq": ("MB/s", "network bandwidth alone"),
    "n_seq_max": (
        "cores",
        "computing cores at which computation alone reaches its highest bandwidth",
    ),
    "t_seq_max": ("MB/s", "that bandwidth"),
    "n_par_max": ("cores", "computing cores at which both together reach their highest bandwidth"),
    "t_par_max": ("MB/s", "that bandwidth"),
    "t_par_max2": ("MB/s", "bandwidth of both together with n_seq_max cores"),
    "delta_l": ("MB/s per core", "bandwidth lost per core between n_par_max and n_seq_max"),
    "delta_r": ("MB/s per core", "bandwidth lost per core above n_seq_max"),
    "alpha": ("1", "share of its bandwidth that the network is left with in the worst case"),
}
MANY_PLACEMENTS = 8
"""Up to so many placements are listed one by one."""


class ModelSection(msgspec.Struct, frozen=True, kw_only=True):
    """One model file in the page. `name`: the file's; `shown`: the model that the figures and sliders show,
    empty for a file of an accelerator alone; `errors`: on what this run measured, if it measured what the
    model answers; `notes`: to know before believing them.
    """

    name: str
    document: Document
    shown: str
    figures: tuple[Figure, ...] = ()
    errors: ErrorTable | None = None
    notes: tuple[str, ...] = ()


def model_view(part: ModelSection) -> dict[str, Any]:
    """The template's view of a model file."""
    document = part.document
    models = document.models
    return {
        "name": part.name,
        "machine": document.machine.name,
        "origin": ORIGINS.get(document.calibration.origin, ""),
        "calibration": _calibration(document),
        "shown": _model_name(part.shown) if part.shown else "",
        "validity": document.validity,
        "errors": None if part.errors is None else _errors(part.errors),
        "notes": part.notes,
        "thresholds": [
            {"title": _model_name(name), "rows": _threshold_rows(thresholds)}
            for name, thresholds in (("robust", models.robust), ("threshold", models.threshold))
            if thresholds is not None
        ],
        "flow": _flow_rows(document),
        "gpu": None if document.gpu is None else _gpu(document.gpu),
    }


def embedded(parts: Sequence[ModelSection]) -> dict[str, Any]:
    """What the page's script reads: the documents as M.json has them, of models that the sliders show."""
    shown = [part for part in parts if part.shown]
    return {"files": [{"name": part.name, "document": msgspec.to_builtins(part.document)} for part in shown]}


def _gpu(part: GpuPart) -> dict[str, Any]:
    """The accelerator's errors by kind of case, and its parameters; its notes are among the limits."""
    return {
        "device": part.device or "accelerator",
        "sms": part.sms,
        "errors": [
            (item.family, str(item.cases), *map(_percent, _errors_of(item)), "yes" if item.better else "no")
            for item in part.errors
        ],
        "rows": [_parameter_row(*msgspec.structs.astuple(item)) for item in part.parameters],
    }


def _errors_of(item: FamilyErrors) -> tuple[float | None, ...]:
    return item.fitted, item.held_out, item.share_rule, item.max_min_rule, item.no_loss_rule


def _parameter_row(name: str, value: float, low: float, high: float, unit: str, text: str) -> dict[str, Any]:
    cell = _value(value, Interval(value=value, low=low, high=high))
    return {"name": name, "unit": unit, "text": text, "cells": [cell]}


def _calibration(document: Document) -> str:
    known = document.calibration
    if document.gpu is not None and not fitted_models(document):
        return f"{len(document.gpu.measured)} cases of {document.gpu.run or known.run}."
    cores = f"{known.n_low} to {known.n_high} computing cores"
    if known.n_other_high:
        cores += f" and up to {known.n_other_high} on the other socket"
    every = len(known.placements) == document.machine.nodes**2
    places = f"{len(known.placements)} placements"
    if every:
        places = "every placement"
    elif len(known.placements) <= MANY_PLACEMENTS:
        named = ", ".join(f"{comp}→{comm}" for comp, comm in known.placements)
        places = f"data on nodes (computation→communication) {named}"
    runs = f"{known.runs} points" if known.runs else "published parameters"
    return f"{runs} of {known.run}: {known.kernel}, messages of {format_size(known.size)}, {cores}, {places}."


def _errors(table: ErrorTable) -> dict[str, Any]:
    return {
        "samples": ", ".join(f"{comp}→{comm}" for comp, comm in table.samples),
        "rows": table.rows,
        "lines": [_error_line(line) for line in table.lines],
        "unanswered": [
            f"{_model_name(line.model)}: {line.unanswered} of {table.rows}"
            for line in table.lines
            if line.unanswered
        ],
    }


def _model_name(name: str) -> str:
    return MODELS.get(name).title if name in MODELS.names() else name


def _error_line(line: ModelErrors) -> dict[str, Any]:
    cells = [*_stream_cells(line.comm), *_stream_cells(line.comp), _percent(line.average)]
    covered = [errors.covered for errors in (line.comm, line.comp) if errors.covered is not None]
    cells.append(_percent(sum(covered) / len(covered) if covered else None, digits=0))
    return {"model": _model_name(line.model), "baseline": line.baseline, "cells": cells}


def _stream_cells(errors: Errors) -> list[str]:
    return [_percent(value) for value in (errors.samples, errors.others, errors.all)]


def _percent(value: float | None, digits: int = 2) -> str:
    return "–" if value is None else f"{100 * value:.{digits}f} %"


def _threshold_rows(part: ThresholdPart) -> list[dict[str, Any]]:
    rows = []
    for name, (unit, text) in MEANINGS.items():
        cells = []
        for where in ("local", "remote"):
            parameters = getattr(part, where)
            if parameters is None:
                cells.append("not calibrated")
                continue
            interval = part.intervals.get(where, {}).get(name)
            cells.append(_value(getattr(parameters, name), interval))
        rows.append({"name": name, "unit": unit, "text": text, "cells": cells})
    return rows


def _value(value: float, interval: Interval | None) -> str:
    if interval is None:
        return number(value)
    return with_span(number(value), number(interval.low), number(interval.high))


def _flow_rows(document: Document) -> list[dict[str, Any]]:
    flow = document.models.flow
    if flow is None:
        return []
    known = {item.name: (item.unit, item.text) for item in PARAMETERS}
    rows = zip(flow.names, flow.values, flow.low, flow.high, strict=True)
    # Files of other releases may have other parameters.
    return [_parameter_row(*row, *known.get(row[0], ("", ""))) for row in rows]
