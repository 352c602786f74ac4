"""The report's section on fitted models: figures, errors, parameters, and the sliders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from elbowroom.draw.figure import Figure
from elbowroom.models.document import Document
from elbowroom.models.evaluate import Errors, ErrorTable, ModelErrors
from elbowroom.models.flow.law import PARAMETERS
from elbowroom.models.gpu.part import FamilyErrors, GpuPart
from elbowroom.models.registry import MODELS, fitted_models
from elbowroom.models.threshold.law import ThresholdPart
from elbowroom.quantities import format_size, number, with_span
from elbowroom.stats.interval import Interval

ORIGINS = {
    "virtual": "virtual: fitted to values of a simulated machine",
    "imported": "imported: fitted to values measured with another program",
    "published": "published: parameters from the thesis",
}
MEANINGS = {
    "b_comp_seq": ("MB/s", "memory bandwidth of one computing core alone"),
    "b_comm_seq": ("MB/s", "network bandwidth alone"),
    "n_seq_max": ("cores", "computing cores at the highest bandwidth of computation alone"),
    "t_seq_max": ("MB/s", "that bandwidth"),
    "n_par_max": ("cores", "computing cores at the highest bandwidth of both together"),
    "t_par_max": ("MB/s", "that bandwidth"),
    "t_par_max2": ("MB/s", "both together with n_seq_max cores"),
    "delta_l": ("MB/s per core", "loss per core between these two numbers of cores"),
    "delta_r": ("MB/s per core", "loss per core above n_seq_max"),
    "alpha": ("1", "share of its bandwidth that the network keeps in the worst case"),
}
MANY_PLACEMENTS = 8
"""Up to so many placements are listed one by one."""


class Modelled(msgspec.Struct, frozen=True, kw_only=True):
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


def section(part: Modelled) -> dict[str, Any]:
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


def embedded(parts: Sequence[Modelled]) -> dict[str, Any]:
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
        cores += f" and up to {known.n_other_high} of the other socket"
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
