"""A real program at work in the probe's place: asked for steps of one variant, answered as a repetition."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Any

import msgspec

from elbowroom.launch.launchers import Launch
from elbowroom.launch.mpi import Mpi
from elbowroom.launch.session import Session, SessionLost, error_of
from elbowroom.plan.ordering import SET_UP
from elbowroom.plan.point import Point, Unit
from elbowroom.store.journal import failed_entry

_PHASES = {"none": "A", "communication": "B", "overlap": "AB"}
"""What the sides of a variant are, as phases of docs/protocol.md; `apart` is A, then B."""

_MICRO = 1e6
"""us in a s."""


class ApplicationSession(Session):
    """A live application (docs/diffusion.md) that speaks the probe's records.

    Its settings are in a file of its own while it runs.
    """

    what = "the application"

    def __init__(self, launch: Callable[[str], Launch], point: Point, mpi: Mpi) -> None:
        """`launch` gives the command line for the path of the settings; `point` has all threads wanted."""
        assert point.application is not None
        self.what = point.application.name
        self._facts: dict[str, float] = {}
        handle, self._config = tempfile.mkstemp(prefix=f"{self.what}-", suffix=".json")
        try:
            with open(handle, "wb") as file:
                file.write(msgspec.json.encode(settings(point)))
            patience = 60.0 + 10.0 * point.application.cells / SET_UP
            super().__init__(launch(self._config), ranks=point.application.nodes, mpi=mpi, patience=patience)
        except BaseException:
            self._forget()
            raise

    def ask(self, unit: Unit, request: dict[str, Any], patience: float) -> dict[str, Any]:
        """The answer as a `repetition` record; raises SessionLost as any session."""
        return record_of(unit, request, super().ask(unit, request, patience), self._facts)

    def close(self) -> None:
        """Ends the application as any session, and removes its settings."""
        super().close()
        self._forget()

    def _hello(self, ranks: int, mpi: Mpi | None, patience: float) -> dict[str, Any]:
        hello = super()._hello(ranks, mpi, patience)
        self._facts = facts_of(hello)
        return hello

    def _answer(self, patience: float) -> dict[str, Any]:
        told = super()._answer(patience)
        return {"record": "error", **told["error"]} if "error" in told else told

    def _forget(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._config)


def settings(point: Point) -> dict[str, Any]:
    """What the application is started with (apps/diffusion/README.md): the mesh, and where processes are."""
    assert point.application is not None
    asked: dict[str, Any] = {
        "cells": point.application.cells,
        "partitioner": point.application.partitioner,
        "comp_cores": list(point.comp_cores),
        "comm_cores": list(point.comm_cores),
        "comp_node": point.comp_node,
        "comm_node": point.comm_node,
    }
    if point.placements:
        asked["placements"] = [msgspec.to_builtins(place) for place in point.placements]
        computing = [core for place in point.placements for core in place.comp_cores]
        # Two processes of a host of two cores compute on one core in turn: flagged, not refused.
        asked["scheduling"] = len(set(computing)) < len(computing)
    return asked


def refused_threads(mpi: Mpi, hosts: int) -> str:
    """Why several communication threads cannot be measured; empty where they can.

    On one host Open MPI is told to use ob1, which crashes then (docs/decisions.md).
    """
    if mpi.kind != "openmpi" or hosts > 1:
        return ""
    return "several communication threads crash or hang in Open MPI's ob1; take --mpi mpich"


def facts_of(hello: Mapping[str, Any]) -> dict[str, float]:
    """What an application says of its mesh and messages: a step's bytes, operations and cells of the largest
    part, bytes sent in a step by all parts, on average and by the busiest, the largest message, and most
    messages of a part.
    """
    parts = hello["parts"]
    most = max(part["cells"] for part in parts)
    return {
        "cells": hello["cells"],
        "step_bytes": max(part["step_bytes"] for part in parts),
        "step_flops": most * hello["cell_flops"],
        "total_bytes": hello["halo_bytes"],
        "average_bytes": hello["halo_bytes"] / len(parts),
        "largest_bytes": max(part["sent_bytes"] for part in parts),
        "largest_message": max(
            (link["sent_bytes"] for part in parts for link in part["neighbours"]), default=0
        ),
        "messages": max(part["messages"] for part in parts),
    }


def record_of(
    unit: Unit, request: Mapping[str, Any], answer: Mapping[str, Any], facts: Mapping[str, float]
) -> dict[str, Any]:
    """A unit's answer as a `repetition` record of docs/protocol.md: durations in us, one value for all steps
    (their median) beside the steps themselves; `total` and `separator` are an application's own.
    """
    if answer.get("record") == "error":
        return failed_entry(unit, error_of(dict(answer)).sentence()).record
    if answer.get("variant") != request["variant"] or answer.get("steps") != request["steps"]:
        raise SessionLost(f"the application answered something else: {str(answer)[:200]}")
    record: dict[str, Any] = {
        "record": "repetition",
        "point": unit.point,
        "repetition": unit.repetition,
        "status": "ok",
        "reason": "",
        "flags": list(answer.get("flags", ())),
        "facts": dict(facts),
        "phases": phases_of(request["variant"], answer),
    }
    if not answer.get("valid", False):
        for phase in record["phases"]:
            phase |= {"status": "void", "flags": ["validation_failed"]}
    return record


def phases_of(variant: str, answer: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The phases that the steps of a variant are."""
    whole = {
        "total": _durations(answer["step_s"]),
        "separator": _durations(answer.get("separator_s", ())),
    }
    sides = {
        "comp": _durations(answer.get("interior_s", ()), "rate"),
        "comm": _durations(answer.get("exchange_s", ())),
    }
    seconds = sum(answer["step_s"])
    found: list[tuple[str, dict[str, Any]]]
    if variant == "apart":
        found = [("A", {"comp": sides["comp"]} | whole), ("B", {"comm": sides["comm"]})]
    elif variant == "none":
        found = [("A", {"comp": sides["comp"]} | whole)]
    elif variant == "communication":
        found = [("B", {"comm": sides["comm"], "total": whole["total"]})]
    else:
        found = [(_PHASES[variant], sides | whole)]
    return [
        {
            "phase": name,
            "index": index,
            "status": "ok",
            "flags": [],
            "measured_s": seconds if index == 0 else 0.0,
            **{side: value for side, value in told.items() if value is not None},
        }
        for index, (name, told) in enumerate(found)
    ]


def _durations(seconds: Sequence[float], key: str = "value") -> dict[str, Any] | None:
    if not seconds:
        return None
    batches = [_MICRO * value for value in seconds]
    return {key: median(batches), "unit": "us", "batches": batches}
