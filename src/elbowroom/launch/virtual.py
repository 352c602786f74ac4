"""A virtual machine in the place of a probe: found by name or file, it answers at once and starts nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from elbowroom.errors import UsageError
from elbowroom.launch.application import record_of
from elbowroom.machine.topology import Machine, read_topology
from elbowroom.model import published
from elbowroom.plan.kernels import closest
from elbowroom.plan.point import Point, Unit
from elbowroom.virtual.answers import VirtualMachine
from elbowroom.virtual.definition import TRUTHS, Definition, TruthName, decode
from elbowroom.virtual.machines import generic, of_name, simulated


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """A definition and, where hwloc described the machine, its own numbers of cores and nodes."""

    definition: Definition
    machine: Machine | None = None


def load(spec: str) -> Found:
    """The machine that `--machine` names: NAME, FILE.toml or FILE.xml, each with `:published`, `:credits` or
    `:requests` behind it where another truth than its own is wanted.

    UsageError for unknown names (near ones are listed), files that are none, and unknown truths.
    """
    name, truth = _split(spec)
    if name.endswith(".xml"):
        found = _of_xml(Path(name))
    elif name.endswith(".toml") or "/" in name:
        found = Found(definition=decode(_text(Path(name)), name))
    else:
        found = Found(definition=_of_name(name))
    if truth is None:
        return found
    return msgspec.structs.replace(found, definition=msgspec.structs.replace(found.definition, truth=truth))


def _split(spec: str) -> tuple[str, TruthName | None]:
    name, colon, word = spec.rpartition(":")
    if not colon:
        return spec, None
    for truth in TRUTHS:
        if word == truth:
            return name, truth
    raise UsageError("no such truth", field="machine", value=spec, mend=closest(word, TRUTHS))


def _of_name(name: str) -> Definition:
    if name not in published.names():
        raise UsageError(
            "is no published machine",
            field="machine",
            value=name,
            mend=f"{closest(name, published.names())}; or a file: mine.toml, mine.xml (see docs/virtual.md)",
        )
    return of_name(name)


def _of_xml(path: Path) -> Found:
    """hwloc's topology; bandwidths from the TOML file of the same name beside it, else generic ones."""
    machine = simulated(read_topology(path))
    definition = generic(machine)
    sibling = path.with_suffix(".toml")
    if sibling.is_file():
        told = decode(_text(sibling), str(sibling))
        for field in ("sockets", "cores_per_socket", "numa_per_socket"):
            if getattr(told, field) != getattr(definition, field):
                raise UsageError(
                    f"does not fit {path}, which has {getattr(definition, field)}",
                    field=field,
                    value=getattr(told, field),
                    mend=f"mend {sibling}, or rename it",
                )
        definition = told
    return Found(definition=definition, machine=msgspec.structs.replace(machine, name=definition.name))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or "is no text in UTF-8"
        raise UsageError(
            f"cannot be read ({reason})",
            field="machine",
            value=str(path),
            mend=f"name a file, or one of: {', '.join(published.names())}",
        ) from error


class VirtualProbe:
    """A conversation with a virtual machine."""

    def __init__(self, machine: VirtualMachine, ranks: int) -> None:
        self._machine = machine
        self.hello = machine.hello(ranks)

    def ask(self, unit: Unit, request: dict[str, Any], patience: float) -> dict[str, Any]:
        """What the machine's law and its noise say."""
        return self._machine.answer(unit, request)

    def close(self) -> None:
        """Nothing runs, so nothing ends."""


class VirtualCluster:
    """A conversation with an application on a cluster of virtual machines."""

    def __init__(self, machine: VirtualMachine, point: Point) -> None:
        from elbowroom.virtual.cluster import Cluster

        self._cluster = Cluster(machine, point)
        assert point.application is not None
        self.hello = machine.hello(point.application.nodes)

    def ask(self, unit: Unit, request: dict[str, Any], patience: float) -> dict[str, Any]:
        """What the fluid simulation and the noise say."""
        facts = self._cluster.facts()
        return record_of(unit, request, self._cluster.answer(unit, request), facts)

    def close(self) -> None:
        """Nothing runs, so nothing ends."""
