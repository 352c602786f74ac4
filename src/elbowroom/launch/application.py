"""Sessions with an application, which is sent steps of one variant and whose answer becomes a repetition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from elbowroom.launch.mpi import Mpi
from elbowroom.launch.programs import ProgramSession
from elbowroom.launch.session import SessionLost, error_of
from elbowroom.plan.point import Unit
from elbowroom.store.journal import failed_entry

_PHASES = {"none": "A", "communication": "B", "overlap": "AB"}
"""What the sides of a variant are, as phases of docs/reference/protocol.md; `apart` is A, then B."""

_MICRO = 1e6
"""us in a s."""


class ApplicationSession(ProgramSession):
    """A live application (docs/guide/diffusion.md), whose answers become `repetition` records."""

    _facts: Mapping[str, float] = {}

    def ask(self, unit: Unit, request: dict[str, Any], patience: float) -> dict[str, Any]:
        """The answer as a `repetition` record; raises SessionLost as any session."""
        return record_of(unit, request, super().ask(unit, request, patience), self._facts)

    def _hello(self, ranks: int, mpi: Mpi | None, patience: float) -> dict[str, Any]:
        hello = super()._hello(ranks, mpi, patience)
        self._facts = facts_of(hello)
        return hello

    def _answer(self, patience: float) -> dict[str, Any]:
        answer = super()._answer(patience)
        return {"record": "error", **answer["error"]} if "error" in answer else answer


def refused_threads(mpi: Mpi, hosts: int) -> str:
    """Why several communication threads cannot be measured; empty where they can.

    On one host Open MPI is told to use ob1, which crashes then (docs/design/decisions.md).
    """
    if mpi.kind != "openmpi" or hosts > 1:
        return ""
    return "several communication threads crash or hang in Open MPI's ob1; take --mpi mpich"


def facts_of(hello: Mapping[str, Any]) -> dict[str, float]:
    """Facts about an application's mesh and messages, from its `hello` record.

    Per step: bytes and operations of the largest part; bytes sent by all parts, on average and by the busiest
    part; the largest message, bytes; the most messages of a part.
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
    """A unit's answer as a `repetition` record (docs/reference/protocol.md).

    Durations are in us: the median over the steps beside the steps themselves. Only applications have the
    sides `total` and `separator`.
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
    phases: list[tuple[str, dict[str, Any]]]
    if variant == "apart":
        phases = [("A", {"comp": sides["comp"]} | whole), ("B", {"comm": sides["comm"]})]
    elif variant == "none":
        phases = [("A", {"comp": sides["comp"]} | whole)]
    elif variant == "communication":
        phases = [("B", {"comm": sides["comm"], "total": whole["total"]})]
    else:
        phases = [(_PHASES[variant], sides | whole)]
    return [
        {
            "phase": name,
            "index": index,
            "status": "ok",
            "flags": [],
            "measured_s": seconds if index == 0 else 0.0,
            **{side: value for side, value in sides_of_phase.items() if value is not None},
        }
        for index, (name, sides_of_phase) in enumerate(phases)
    ]


def _durations(seconds: Sequence[float], key: str = "value") -> dict[str, Any] | None:
    if not seconds:
        return None
    batches = [_MICRO * value for value in seconds]
    return {key: median(batches), "unit": "us", "batches": batches}
