"""The report's section on a job: its place on the machine's contention map, and the advice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from elbowroom import quantities
from elbowroom.advise.advice import Advice, Choice, Configuration
from elbowroom.advise.contention_map import ContentionMap, Spot
from elbowroom.advise.job import Setup
from elbowroom.draw.figure import Figure
from elbowroom.quantities import format_size, number, percent, plural, short_time
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


class Jobbed(msgspec.Struct, frozen=True, kw_only=True):
    """A job in the page: `model` is the file that predicts; `maps` and their `figures`; `notes`: limits."""

    model: str
    advice: Advice
    maps: tuple[ContentionMap, ...]
    figures: tuple[Figure, ...]
    notes: tuple[str, ...] = ()


def section(part: Jobbed) -> dict[str, Any]:
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
    comm, comp = (_kept(kept) for kept in (spot.kept_comm, spot.kept_comp))
    return f"{where}; communication keeps {comm}, computation {comp}."


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
