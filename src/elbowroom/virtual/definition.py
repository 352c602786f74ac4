"""What defines a virtual machine: its shape, its processor, its network and its bandwidths; as TOML.

The format is described in docs/reference/machine-file.md.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import Meta

from elbowroom.documents import TomlFormat, convert
from elbowroom.errors import UsageError
from elbowroom.models.curves import Shape
from elbowroom.models.threshold.law import Parameters, Threshold
from elbowroom.virtual.effects import Effect, wrong
from elbowroom.virtual.gpu import Gpu

PAGE = "`elbowroom help virtual`"

TruthName = Literal["published", "credits", "requests"]
TRUTHS: tuple[TruthName, ...] = ("published", "credits", "requests")

Positive = Annotated[float, Meta(gt=0, le=1e9)]
Count = Annotated[int, Meta(ge=1, le=4096)]
"""Of cores, nodes or threads: bounded, since every one of them becomes an object."""

CountOrNone = Annotated[int, Meta(ge=0, le=4096)]

CacheSize = Annotated[int, Meta(ge=1, le=2**40)]

NEAR_LATENCY_US, FAR_LATENCY_US = 1.39, 1.67
"""Latency of the smallest message, by where the communication thread is: henri, Denis et al. 2021, 4.3."""

CLOCK_GHZ = 2.3

UNKNOWN_MEMORY_GB = 64.0
"""Plans size their arrays by it; no bandwidth depends on it."""

FLOPS_PER_CYCLE = 4.0
"""Of plain compiled loops: two lanes of SSE2, a multiplication and an addition each."""


class Processor(NamedTuple):
    """What makers publish of a processor. `caches`: (level, bytes, cores that share one, 0: all of the
    socket); hardware threads and how they are numbered; memory channels of a socket, their peak (MB/s each),
    the links to the other socket (MB/s each direction), and whether stores saturate a socket's fabric before
    its controllers.
    """

    caches: tuple[tuple[int, int, int], ...]
    channels: int
    channel: float
    link: float
    narrow: bool = False
    threads: int = 2
    siblings: Literal["machine", "socket"] = "machine"


def _skylake(last: int, channel: float) -> Processor:
    return Processor(((1, 32 << 10, 1), (2, 1 << 20, 1), (3, last, 0)), 6, channel, 41_600)


_ROME = Processor(((1, 32 << 10, 1), (2, 512 << 10, 1), (3, 16 << 20, 4)), 8, 25_600, 128_000, narrow=True)
PROCESSORS = {
    # Caches: of AMD and Cavium figures C.1, C.4 and C.10 of the thesis, of Intel its product pages. Channels
    # and their rate: product pages. Links: two UPI of 10.4 GT/s or two QPI of 9.6 GT/s, 2 B wide (most
    # two-socket boards wire two); four xGMI-2 of 16 lanes at 16 GT/s; CCPI2 of 600 Gb/s. Rome's fabric takes
    # 32 B of loads but 16 B of stores a cycle from each chiplet, so stores do not reach what the controllers
    # can.
    "EPYC 7502": _ROME,
    "EPYC 7452": _ROME,
    "Gold 6130": _skylake(22 << 20, 21_333),
    "Gold 6140": _skylake(25_344 << 10, 21_333),
    "Gold 6240": _skylake(25_344 << 10, 23_467),
    "E5-2690v4": Processor(((1, 32 << 10, 1), (2, 256 << 10, 1), (3, 35 << 20, 0)), 4, 19_200, 38_400),
    "ThunderX2": Processor(
        ((1, 32 << 10, 1), (2, 256 << 10, 1), (3, 32 << 20, 0)),
        8,
        21_333,
        75_000,
        threads=4,
        siblings="socket",
    ),
}


def processor_of(name: str) -> Processor | None:
    """The published facts of a processor, if there are any."""
    return next((facts for key, facts in PROCESSORS.items() if key in name), None)


class Plain(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A side in four numbers: MB/s of one core alone, of all cores of a socket on one node, of the NIC into
    it, and the share that communications keep at worst.
    """

    core: Positive
    memory: Positive
    nic: Positive
    kept: Annotated[float, Meta(gt=0, le=1)]

    def parameters(self, cores: int) -> Parameters:
        """The threshold model's parameters: no loss before the capacity, none beyond it."""
        computing = min(self.memory, cores * self.core)
        most = min(max(self.memory, self.nic), cores * self.core + self.nic)
        n_seq = min(cores, math.ceil(self.memory / self.core))
        n_par = min(n_seq, max(1, math.ceil((most - self.nic) / self.core)))
        return Parameters(
            n_par_max=n_par,
            t_par_max=most,
            n_seq_max=n_seq,
            t_seq_max=computing,
            t_par_max2=most,
            alpha=self.kept,
            delta_l=0.0,
            delta_r=0.0,
            b_comp_seq=self.core,
            b_comm_seq=self.nic,
        )


class PublishedStep(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A step of the diffusion solver on so many nodes, times in ms: `t_comp` without communication, `t_comm`
    the exchange alone, `overlap` both at once, `apart` one after the other (None: not known, and n/a);
    `separator` is the part of the first before anything is sent.
    """

    nodes: Count
    t_comp: Positive
    t_comm: Positive
    overlap: Positive
    apart: Positive | None = None
    separator: Annotated[float, Meta(ge=0)] = 0.0


class Definition(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A virtual machine. `local` and `remote` are the thesis' parameters (MB/s, relative to the cores of the
    first socket); `remote` None: not known, and those placements are not answered.

    `origin` says where the bandwidths come from; `faithful` keeps the published equations to the letter where
    they are odd (docs/reference/models.md). `layout`: where sockets are not alike, cores and NUMA nodes of
    each, the first one as `cores_per_socket` and `numa_per_socket` say. `caches`: (level, bytes, cores that
    share one). `siblings`: whether the other hardware threads are numbered behind those of the machine or of
    the socket. Latencies are of the smallest message, by where the communication thread is. `between_starts`:
    how much a value varies from one start of the program to the next, as a standard deviation of its
    logarithm. `notes`: what is unusual about the topology that it was made of. `gpu`: an accelerator on the
    NIC's socket.
    """

    name: str
    origin: str
    truth: TruthName = "published"
    faithful: bool = False
    processor: str = "unknown processor"
    network: str = "unknown network"
    sockets: Count = 2
    cores_per_socket: Count
    numa_per_socket: Count = 1
    layout: tuple[tuple[CountOrNone, CountOrNone], ...] | msgspec.UnsetType = msgspec.UNSET
    threads_per_core: Annotated[int, Meta(ge=1, le=8)] = 1
    siblings: Literal["machine", "socket"] = "machine"
    memory_gb: Positive
    nic_node: Annotated[int, Meta(ge=0)] = 0
    caches: tuple[tuple[Annotated[int, Meta(ge=1, le=4)], CacheSize, Count], ...] = ()
    clock_ghz: Positive = CLOCK_GHZ
    flops_per_cycle: Positive = FLOPS_PER_CYCLE
    near_latency_us: Positive = NEAR_LATENCY_US
    far_latency_us: Positive = FAR_LATENCY_US
    between_starts: Annotated[float, Meta(ge=0, le=1)] | msgspec.UnsetType = msgspec.UNSET
    steps: tuple[PublishedStep, ...] | msgspec.UnsetType = msgspec.UNSET
    local: Parameters
    remote: Parameters | None = None
    effects: tuple[Effect, ...] = ()
    notes: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    gpu: Gpu | msgspec.UnsetType = msgspec.UNSET

    @property
    def shape(self) -> Shape:
        """What truths know of its topology."""
        return Shape(
            name=self.name,
            cores_first_socket=self.cores_per_socket,
            numa_per_socket=self.numa_per_socket,
            sockets=self.sockets,
            nic_node=self.nic_node,
            virtual=True,
            layout=self.layout,
        )

    def published_step(self, nodes: int) -> PublishedStep | None:
        """The published step on so many nodes; None without any steps. UsageError for other numbers."""
        if isinstance(self.steps, msgspec.UnsetType):
            return None
        by_nodes = {step.nodes: step for step in self.steps}
        if nodes not in by_nodes:
            raise UsageError(
                f"{self.name} has published steps of other numbers only",
                field="nodes",
                value=nodes,
                hint=f"choose among {', '.join(map(str, sorted(by_nodes)))}",
            )
        return by_nodes[nodes]

    @property
    def core_peak(self) -> float:
        """What a core computes at most, Mflop/s."""
        return self.clock_ghz * 1e3 * self.flops_per_cycle

    @property
    def model(self) -> Threshold:
        """The bandwidths as a threshold model."""
        return Threshold(shape=self.shape, local=self.local, remote=self.remote)


class VirtualMachineFacts(Definition, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A definition, and the NUMA nodes that its shape makes."""

    virtual: bool = True
    nodes: int


class VirtualMachineDocument(VirtualMachineFacts, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What `machine show --json` and `machine from-run --json` print; the latter with the `file` it wrote."""

    schema: str = "elbowroom/machine"
    version: int = 1
    file: str | msgspec.UnsetType = msgspec.UNSET


class VirtualMachineList(msgspec.Struct, frozen=True, kw_only=True):
    """What `machine list --json` prints."""

    schema: str = "elbowroom/machines"
    version: int = 1
    machines: tuple[VirtualMachineFacts, ...]


def facts_of(definition: Definition) -> VirtualMachineFacts:
    """A definition with what its shape makes."""
    return VirtualMachineFacts(**msgspec.structs.asdict(definition), nodes=definition.shape.nodes)


DEFINITION = TomlFormat(kind=Definition, field="machine", of="a machine", page=PAGE)


def decode(text: str, where: str) -> Definition:
    """A definition from TOML; `where` names it in errors, which also tell field, value and hint."""

    def normal(data: dict[str, Any]) -> dict[str, Any]:
        cores = data.get("cores_per_socket")
        for side in {"local", "remote"} & data.keys():
            data[side] = _side(data[side], side, cores, where)
        return {"origin": f"written in {where}", **data}

    return checked(DEFINITION.decode(text, where, normal))


def encode(definition: Definition) -> str:
    """The definition as TOML that `decode` reads back."""
    data = msgspec.to_builtins(definition)
    effects = data.pop("effects")
    steps = data.pop("steps", [])
    gpu = data.pop("gpu", None)
    plain = {key: value for key, value in data.items() if not isinstance(value, dict) and value is not None}
    lines = [f"{key} = {_toml(value)}" for key, value in plain.items()]
    for side in ("local", "remote"):
        if data[side] is not None:
            lines += ["", f"[{side}]", *(f"{key} = {_toml(value)}" for key, value in data[side].items())]
    for effect in effects:
        given = {key: value for key, value in effect.items() if value not in (None, (), {}, "", 0.0)}
        lines += ["", "[[effects]]", *(f"{key} = {_toml(value)}" for key, value in given.items())]
    for step in steps:
        known = {key: value for key, value in step.items() if value is not None}
        lines += ["", "[[steps]]", *(f"{key} = {_toml(value)}" for key, value in known.items())]
    if gpu is not None:
        lines += ["", "[gpu]", *(f"{key} = {_toml(value)}" for key, value in gpu.items())]
    return "\n".join(lines) + "\n"


def _side(table: Any, side: str, cores: Any, where: str) -> Any:
    """Four plain numbers become the thesis' ten; unknown keys are refused by name."""
    if not isinstance(table, dict):
        return table
    plain = {field.name for field in msgspec.structs.fields(Plain)}
    full = {field.name for field in msgspec.structs.fields(Parameters)}
    known = plain if plain & table.keys() else full
    for key in table.keys() - known:
        raise UsageError(
            f"no such key of a side, in {where}",
            field=f"{side}.{key}",
            value=str(table[key]),
            hint=f"give {', '.join(sorted(plain))}, or those of the thesis: {', '.join(sorted(full))}",
        )
    if known is full:
        return table
    side_of = convert(table, Plain, where=where, subject="machine", page=PAGE, prefix=f"{side}.")
    return msgspec.to_builtins(side_of.parameters(cores if isinstance(cores, int) and cores > 0 else 1))


def checked(definition: Definition) -> Definition:
    """The definition, unless it is what no machine can be: nodes or counts of cores that it has not, or
    bandwidths of nothing. UsageError then.
    """
    if definition.nic_node >= definition.shape.nodes:
        raise UsageError(
            "is not a node of this machine",
            field="nic_node",
            value=definition.nic_node,
            hint=f"nodes: 0-{definition.shape.nodes - 1}",
        )
    _check_layout(definition)
    if isinstance(definition.layout, msgspec.UnsetType) and (
        definition.numa_per_socket > definition.cores_per_socket
    ):
        raise UsageError(
            f"is more than there are cores ({definition.cores_per_socket}) in a socket",
            field="numa_per_socket",
            value=definition.numa_per_socket,
            hint="give every node a core",
        )
    if definition.remote is not None and definition.sockets == 1:
        raise UsageError(
            "a machine of one socket has no remote node",
            field="remote",
            hint="leave the table out, or sockets = 2",
        )
    for effect in definition.effects:
        if (fault := wrong(effect)) is not None:
            key, value = fault
            hint = "give pairs [x, value] with rising x; comm and comp are positive shares"
            raise UsageError("is not a curve", field=f"effects.{key}", value=value, hint=hint)
    _check_side(definition.local, "local", definition.cores_per_socket)
    if definition.remote is not None:
        _check_side(definition.remote, "remote", definition.cores_per_socket)
    return definition


def _check_layout(definition: Definition) -> None:
    if isinstance(definition.layout, msgspec.UnsetType):
        return
    if len(definition.layout) != definition.sockets:
        raise UsageError(
            f"does not list {definition.sockets} sockets",
            field="layout",
            value=[list(socket) for socket in definition.layout],
            hint="give [cores, NUMA nodes] of each",
        )
    first = (definition.cores_per_socket, definition.numa_per_socket)
    if definition.layout[0] != first:
        raise UsageError(
            f"begins with another socket than cores_per_socket and numa_per_socket say ({list(first)})",
            field="layout",
            value=list(definition.layout[0]),
            hint="the first socket must have cores and memory",
        )


def _check_side(p: Parameters, side: str, cores: int) -> None:
    for name in ("t_par_max", "t_seq_max", "t_par_max2", "b_comp_seq", "b_comm_seq"):
        value = getattr(p, name)
        if not (value > 0 and math.isfinite(value)):
            raise UsageError(
                "is not a bandwidth",
                field=f"{side}.{name}",
                value=value,
                hint="give a positive number of MB/s",
            )
    for name in ("n_par_max", "n_seq_max"):
        n = getattr(p, name)
        if not 1 <= n <= cores:
            hint = f"1 to {cores}, the cores of the first socket"
            raise UsageError("is not a number of cores", field=f"{side}.{name}", value=n, hint=hint)
    if not 0 < p.alpha <= 1:
        raise UsageError(
            "is not a share that is kept", field=f"{side}.alpha", value=p.alpha, hint="above 0, up to 1"
        )
    least = p.t_par_max2 - max(p.delta_r, 0.0) * (cores - p.n_seq_max)
    if not least > p.alpha * p.b_comm_seq:
        raise UsageError(
            f"of {p.b_comm_seq:g} MB/s leaves computations nothing of the {least:g} MB/s of both together",
            field=f"{side}.alpha",
            value=p.alpha,
            hint="give less for what communications keep, or more for both together",
        )


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    return repr(value)
