"""The results of a run as one document."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from elbowroom import experiments
from elbowroom.machine.topology import Machine
from elbowroom.measure.results import Results
from elbowroom.points.point import Note
from elbowroom.results.result import Finding, PointResult, Verdict
from elbowroom.results.tails import PointTail
from elbowroom.store.folder import Manifest

SCHEMA, VERSION = "elbowroom/show", 1


class ShownMachine(Machine, frozen=True, kw_only=True):
    """The machine of a run, its `state` before and after, and why what is `unknown` could not be read."""

    state: dict[str, dict[str, Any]]
    unknown: dict[str, str]


class Show(msgspec.Struct, frozen=True, kw_only=True):
    """What `show --json` prints, but for what experiments add."""

    schema: str = SCHEMA
    version: int = VERSION
    run: str = ""
    elbowroom: str = ""
    created: str = ""
    command: tuple[str, ...] = ()
    plan: dict[str, Any] = {}
    machine: ShownMachine
    mpi: dict[str, Any] = {}
    measured_share: float | None = None
    verdict: Verdict
    points: tuple[PointResult, ...]
    findings: tuple[Finding, ...]
    notes: tuple[Note, ...]
    tails: tuple[PointTail, ...] | msgspec.UnsetType = msgspec.UNSET


def show_type() -> type[msgspec.Struct]:
    """The type of the whole document: with what experiments add."""
    added: list[Any] = [
        (key, kind | msgspec.UnsetType, msgspec.UNSET)
        for experiment in experiments.all()
        for key, kind in experiment.data_types.items()
    ]
    return msgspec.defstruct("Show", added, bases=(Show,), namespace={"__doc__": Show.__doc__}, kw_only=True)


def document(path: Path, manifest: Manifest, results: Results) -> dict[str, Any]:
    """The results of the run in a folder, as plain data."""
    whole = Show(
        run=str(path),
        elbowroom=manifest.elbowroom,
        created=manifest.created,
        command=manifest.command,
        plan=manifest.plan,
        machine=ShownMachine(
            **msgspec.structs.asdict(results.machine), state=manifest.state, unknown=manifest.unknown
        ),
        mpi=manifest.hello.get("mpi", {}),
        measured_share=manifest.measured_share,
        verdict=results.verdict,
        points=results.points,
        findings=results.findings,
        notes=results.notes,
        tails=results.tails or msgspec.UNSET,
    )
    plain: dict[str, Any] = msgspec.to_builtins(whole) | msgspec.to_builtins(results.data())
    plain["points"] = [point.plain() for point in results.points]
    return plain
