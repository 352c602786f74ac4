"""Virtual machines: the nine published ones by name, or made of a topology and generic bandwidths.

G1 is the curves that the thesis' model draws with its published parameters (appendix E), to the letter.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from importlib.metadata import EntryPoint
from statistics import median

import msgspec

from elbowroom import plugins
from elbowroom.errors import UsageError, closest
from elbowroom.files import data_folder, read_text
from elbowroom.machine.layout import regular_machine
from elbowroom.machine.topology import Machine, Nic
from elbowroom.models import published
from elbowroom.models.curves import Situation, Streams
from elbowroom.models.run_data import layout_of
from elbowroom.models.threshold.law import Threshold, curve
from elbowroom.plan.placement import near_node
from elbowroom.virtual.credits import Credits, scaled_network
from elbowroom.virtual.definition import (
    CLOCK_GHZ,
    UNKNOWN_MEMORY_GB,
    Definition,
    Plain,
    Processor,
    decode,
    processor_of,
)
from elbowroom.virtual.effects import HOSTS
from elbowroom.virtual.request_calibration import scaled
from elbowroom.virtual.requests import Requests, Simulate
from elbowroom.virtual.truth import Truth, check_situation


class PublishedCurves(Truth):
    """The threshold model as the truth, in its faithful mode unless told otherwise. It knows one computing
    socket only.

    All n of a placement are computed at once and kept.
    """

    def __init__(self, model: Threshold, *, faithful: bool = True) -> None:
        self.model = model
        self.faithful = faithful
        self.shape = msgspec.structs.replace(model.shape, virtual=True)
        self._curves: dict[tuple[int, int], tuple[Streams, ...]] = {}

    def streams(self, situation: Situation) -> Streams:
        """The four bandwidths, MB/s; UsageError for cores of the second socket."""
        check_situation(self.shape, situation)
        if situation.n_other:
            raise UsageError(
                "the published curves do not cover both sockets computing",
                field="n_other",
                value=situation.n_other,
                hint=f"use the network of credits: {self.shape.name}:credits",
            )
        return self._curve(situation.comp_node, situation.comm_node)[situation.n]

    def _curve(self, comp_node: int, comm_node: int) -> tuple[Streams, ...]:
        place = (comp_node, comm_node)
        if place not in self._curves:
            counts = range(self.shape.cores_first_socket + 1)
            rows = curve(self.model, comp_node, comm_node, counts, faithful=self.faithful).tolist()
            self._curves[place] = tuple((a, b, c, d) for a, b, c, d in rows)
        return self._curves[place]


FREQUENCIES = "a virtual machine has no frequencies"
GENERIC = "generic: medians of the nine published machines, not measured on this one"


UNKNOWN = Processor((), 0, 0.0, 0.0)
NO_THREADS = {"billy"}
"""Appendix C calls hyperthreading enabled, its figure C.1 and section 6.3.1 say otherwise."""


def of_name(name: str) -> Definition:
    """The published machine of that name; UsageError lists near ones."""
    machine = published.load(name)
    processor = processor_of(machine.processor) or UNKNOWN
    clock = re.search(r"([\d.]+) GHz", machine.processor)
    threads = processor.threads if machine.hyperthreading and name not in NO_THREADS else 1
    return Definition(
        name=name,
        origin=f"Swartvagher 2022, Table {machine.table}",
        faithful=True,
        processor=machine.processor,
        network=machine.network,
        sockets=machine.sockets,
        cores_per_socket=machine.cores_first_socket,
        numa_per_socket=machine.numa_per_socket,
        threads_per_core=threads,
        siblings=processor.siblings,
        memory_gb=machine.memory_gb,
        nic_node=machine.nic_node,
        caches=tuple(
            (level, size, sharing or machine.cores_first_socket) for level, size, sharing in processor.caches
        ),
        clock_ghz=float(clock[1]) if clock else CLOCK_GHZ,
        local=machine.used("local"),
        remote=machine.used("remote"),
    )


FOLDER = data_folder("machines") / "virtual"


@cache
def _with_gpu() -> tuple[str, ...]:
    """Machines that come with elbowroom as files of their own: those with an accelerator."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.toml")))


def _names() -> tuple[str, ...]:
    return (*published.names(), *_with_gpu())


def _own(name: str) -> Definition:
    if name not in _with_gpu():
        return of_name(name)
    path = FOLDER / f"{name}.toml"
    return decode(path.read_text(encoding="utf-8"), path.name)


def _added(entry: EntryPoint) -> Definition:
    path = plugins.file_of(entry)
    hint = f"update or uninstall {plugins.package_of(entry)}"
    definition = decode(read_text(path, field="machine", hint=hint), str(path))
    if definition.name != entry.name:
        raise plugins.refused(entry, f"has a machine named {definition.name!r}, not {entry.name!r}")
    return definition


def _hint(name: str, known: Sequence[str]) -> str:
    return f"{closest(name, known)}; or mine.toml, mine.xml: `elbowroom help virtual`"


MACHINES = plugins.Registry(
    "machines",
    "virtual machine",
    built_in=_names,
    own=_own,
    added=_added,
    field="machine",
    hint=_hint,
)
"""The virtual machines by name: published ones, one with an accelerator, those of installed packages."""


def generic(machine: Machine) -> Definition:
    """A definition for a topology of which no bandwidth is known: GENERIC values, and `origin` says so."""
    layout = layout_of(machine)
    shape = layout.shape
    local, remote = (
        _generic(where, shape.numa_per_socket).parameters(shape.cores_first_socket)
        for where in ("local", "remote")
    )
    return Definition(
        name=machine.name,
        origin=GENERIC,
        truth="credits",
        processor=machine.model,
        network=", ".join(nic.name for nic in machine.nics) or "unknown network",
        sockets=shape.sockets,
        cores_per_socket=shape.cores_first_socket,
        numa_per_socket=shape.numa_per_socket,
        layout=shape.layout,
        memory_gb=machine.memory / 1e9 or UNKNOWN_MEMORY_GB,
        nic_node=layout.nodes.index(near_node(machine)),
        local=local,
        remote=remote if shape.sockets > 1 else None,
        notes=machine.peculiarities or msgspec.UNSET,
    )


def _generic(where: published.Where, nodes_per_socket: int) -> Plain:
    """Per core, and per socket shared out among its nodes: the medians of what was published. A NIC writes no
    faster to a node than its cores can.
    """
    sides = [published.load(name).used(where) for name in published.names()]
    memory = median(side.t_seq_max for side in sides) / nodes_per_socket
    return Plain(
        core=median(side.b_comp_seq for side in sides),
        memory=memory,
        nic=min(median(side.b_comm_seq for side in sides), memory),
        kept=median(side.alpha for side in sides),
    )


def machine_of(definition: Definition) -> Machine:
    """The machine that plans are expanded against."""
    shape = definition.shape
    omni_path = "Omni-Path" in definition.network
    nic = Nic(name="hfi1_0" if omni_path else "mlx5_0", kind="openfabrics", node=definition.nic_node)
    machine = regular_machine(
        name=definition.name,
        model=definition.processor,
        cores_per_socket=shape.cores_first_socket,
        numa_per_socket=shape.numa_per_socket,
        sockets=shape.sockets,
        layout=shape.of_sockets,
        nic=nic,
        memory_per_node=int(definition.memory_gb * 1e9 / shape.nodes),
        caches=definition.caches,
        threads_per_core=definition.threads_per_core,
        siblings=definition.siblings,
        hosts=HOSTS,
        virtual=True,
    )
    return simulated(machine)


def simulated(machine: Machine) -> Machine:
    """The machine as a virtual one: two hosts, every core allowed, nothing to set."""
    return msgspec.structs.replace(
        machine,
        allowed=tuple(sorted(core.number for core in machine.cores)),
        hosts=HOSTS,
        virtual=True,
        permitted=(),
        frequency_ranges={},
        refused={"core_frequency": FREQUENCIES, "uncore_frequency": FREQUENCIES},
    )


def truth_of(definition: Definition, simulate: Simulate | None = None) -> Truth:
    """What answers for it: `published`, `credits`, or `requests`, for which `simulate` runs the simulator."""
    if definition.truth == "requests":
        if simulate is None:
            raise UsageError(
                "single requests are simulated by a program, which is not run here",
                field="machine",
                value=f"{definition.name}:requests",
                hint=f"use the network of credits: {definition.name}:credits",
            )
        return Requests(scaled(definition, simulate), simulate)
    network = Credits(
        msgspec.structs.replace(
            scaled_network(definition.model),
            core_peak=definition.core_peak,
            near_latency=definition.near_latency_us,
            far_latency=definition.far_latency_us,
        )
    )
    if definition.truth == "credits":
        return network
    return BothSockets(PublishedCurves(definition.model, faithful=definition.faithful), network)


class BothSockets(Truth):
    """The published curves, carried on where they say nothing: with cores of the second socket, each stream
    changes as much as those cores change it in the network of credits.
    """

    def __init__(self, curves: PublishedCurves, network: Credits) -> None:
        self.curves, self.network = curves, network
        self.shape = curves.shape

    def streams(self, situation: Situation) -> Streams:
        """The four bandwidths, MB/s. With cores of the second socket only, those of the network."""
        check_situation(self.shape, situation)
        if situation.n_other == 0:
            return self.curves.streams(situation)
        if situation.n == 0:
            return self.network.streams(situation)
        first = msgspec.structs.replace(situation, n_other=0)
        a, b, c, d = (
            value * more / less
            for value, more, less in zip(
                self.curves.streams(first),
                self.network.streams(situation),
                self.network.streams(first),
                strict=True,
            )
        )
        return a, b, c, d
