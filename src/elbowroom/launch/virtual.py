"""A virtual machine in the place of a probe: found by name or file, it answers at once and starts nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from elbowroom.errors import UsageError, closest
from elbowroom.files import read_text
from elbowroom.launch.topologies import read_topology_file
from elbowroom.machine.topology import Machine
from elbowroom.points.point import Point
from elbowroom.points.unit import Unit
from elbowroom.virtual.answers import VirtualMachine
from elbowroom.virtual.cluster import SimulatedCluster
from elbowroom.virtual.definition import TRUTHS, Definition, TruthName, decode
from elbowroom.virtual.machines import MACHINES, generic, simulated


class Specification(msgspec.Struct, frozen=True, kw_only=True):
    """A definition and, where hwloc described the machine, its own numbers of cores and nodes."""

    definition: Definition
    machine: Machine | None = None


def load(spec: str) -> Specification:
    """The machine that `--machine` names: NAME, FILE.toml or FILE.xml.

    `:published`, `:credits` or `:requests` at the end selects another truth than the machine's own.

    UsageError for unknown names (near ones are listed), files that are none, and unknown truths.
    """
    name, truth = _split(spec)
    if name.endswith(".xml"):
        chosen = _of_xml(Path(name))
    elif name.endswith(".toml") or "/" in name:
        chosen = Specification(definition=decode(_text(Path(name)), name))
    else:
        chosen = Specification(definition=MACHINES.get(name))
    if truth is None:
        return chosen
    return msgspec.structs.replace(chosen, definition=msgspec.structs.replace(chosen.definition, truth=truth))


def _split(spec: str) -> tuple[str, TruthName | None]:
    name, colon, word = spec.rpartition(":")
    if not colon:
        return spec, None
    for truth in TRUTHS:
        if word == truth:
            return name, truth
    raise UsageError("no such truth", field="machine", value=spec, hint=closest(word, TRUTHS))


def _of_xml(path: Path) -> Specification:
    """hwloc's topology; bandwidths from the TOML file of the same name beside it, else generic ones."""
    machine = simulated(read_topology_file(path))
    definition = generic(machine)
    sibling = path.with_suffix(".toml")
    if sibling.is_file():
        beside = decode(_text(sibling), str(sibling))
        for field in ("sockets", "cores_per_socket", "numa_per_socket", "layout"):
            if getattr(beside, field) != getattr(definition, field):
                raise UsageError(
                    f"does not fit {path}, which has {getattr(definition, field)}",
                    field=field,
                    value=getattr(beside, field),
                    hint=f"fix {sibling}, or rename it",
                )
        definition = beside
    return Specification(
        definition=definition, machine=msgspec.structs.replace(machine, name=definition.name)
    )


def _text(path: Path) -> str:
    return read_text(path, field="machine", hint=f"name a file, or one of: {', '.join(MACHINES.names())}")


class VirtualProbe:
    """A conversation with a virtual machine."""

    def __init__(self, machine: VirtualMachine, ranks: int) -> None:
        self._machine = machine
        self._first: Unit | None = None
        self.hello = machine.hello(ranks)

    def ask(self, unit: Unit, request: dict[str, Any], patience: float) -> dict[str, Any]:
        """What the machine's law and its noise say. A start is named by the first unit that it is asked for,
        so that it answers the same in every run.
        """
        self._first = self._first or unit
        return self._machine.answer(unit, request, self._first)

    def close(self) -> None:
        """Nothing runs, so nothing ends."""


class VirtualCluster:
    """A conversation with an application on a cluster of virtual machines."""

    def __init__(self, machine: VirtualMachine, point: Point) -> None:
        self._cluster = SimulatedCluster(machine, point)
        self._first: Unit | None = None
        self.hello = machine.hello(self._cluster.volumes.parts)

    def ask(self, unit: Unit, request: dict[str, Any], patience: float) -> dict[str, Any]:
        """What the fluid simulation and the noise say."""
        self._first = self._first or unit
        return self._cluster.answer(unit, request, self._first)

    def close(self) -> None:
        """Nothing runs, so nothing ends."""
