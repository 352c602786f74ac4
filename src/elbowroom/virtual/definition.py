"""What defines a virtual machine: its shape, its processor, its network and its bandwidths; as TOML.

The format is described in docs/virtual.md.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from elbowroom.errors import UsageError, explained
from elbowroom.model.curves import Shape
from elbowroom.model.threshold import Parameters, Threshold
from elbowroom.plan.kernels import closest

PAGE = "docs/virtual.md"

TruthName = Literal["published", "credits", "requests"]
TRUTHS: tuple[TruthName, ...] = ("published", "credits", "requests")

Positive = Annotated[float, Meta(gt=0)]
Count = Annotated[int, Meta(ge=1)]

NEAR_LATENCY_US, FAR_LATENCY_US = 1.39, 1.67
"""Latency of the smallest message, by where the communication thread is: henri, Denis et al. 2021, 4.3."""

CLOCK_GHZ = 2.3

UNKNOWN_MEMORY_GB = 64.0
"""Plans size their arrays by it; no bandwidth depends on it."""

FLOPS_PER_CYCLE = 4.0
"""Of plain compiled loops: two lanes of SSE2, a multiplication and an addition each."""


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


class Definition(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A virtual machine. `local` and `remote` are the thesis' parameters (MB/s, relative to the cores of the
    first socket); `remote` None: not known, and those placements are not answered.

    `origin` says where the bandwidths come from; `faithful` keeps the published equations to the letter where
    they are odd (docs/models.md). `caches`: (level, bytes, cores that share one). `siblings`: whether the
    other hardware threads are numbered behind those of the machine or of the socket. Latencies are of the
    smallest message, by where the communication thread is.
    """

    name: str
    origin: str
    truth: TruthName = "published"
    faithful: bool = False
    processor: str = "unknown processor"
    network: str = "unknown network"
    sockets: Annotated[int, Meta(ge=1, le=2)] = 2
    cores_per_socket: Count
    numa_per_socket: Count = 1
    threads_per_core: Count = 1
    siblings: Literal["machine", "socket"] = "machine"
    memory_gb: Positive
    nic_node: Annotated[int, Meta(ge=0)] = 0
    caches: tuple[tuple[Annotated[int, Meta(ge=1, le=4)], Count, Count], ...] = ()
    clock_ghz: Positive = CLOCK_GHZ
    flops_per_cycle: Positive = FLOPS_PER_CYCLE
    near_latency_us: Positive = NEAR_LATENCY_US
    far_latency_us: Positive = FAR_LATENCY_US
    local: Parameters
    remote: Parameters | None = None

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
        )

    @property
    def core_peak(self) -> float:
        """What a core computes at most, Mflop/s."""
        return self.clock_ghz * 1e3 * self.flops_per_cycle

    @property
    def model(self) -> Threshold:
        """The bandwidths as a threshold model."""
        return Threshold(shape=self.shape, local=self.local, remote=self.remote)


def decode(text: str, where: str) -> Definition:
    """A definition from TOML; `where` names it in errors, which also tell field, value and mend."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(
            f"not a TOML file: {error}", field="machine", value=where, mend="mend the line"
        ) from error
    _known_keys(data, where)
    cores = data.get("cores_per_socket")
    for side in ("local", "remote"):
        if side in data:
            data[side] = _side(data[side], side, cores, where)
    data.setdefault("origin", f"written in {where}")
    try:
        found = msgspec.convert(data, Definition)
    except msgspec.ValidationError as error:
        raise explained(error, data, where, subject="machine", page=PAGE) from error
    return checked(found)


def encode(definition: Definition) -> str:
    """The definition as TOML that `decode` reads back."""
    data = msgspec.to_builtins(definition)
    plain = {key: value for key, value in data.items() if not isinstance(value, dict) and value is not None}
    lines = [f"{key} = {_toml(value)}" for key, value in plain.items()]
    for side in ("local", "remote"):
        if data[side] is not None:
            lines += ["", f"[{side}]", *(f"{key} = {_toml(value)}" for key, value in data[side].items())]
    return "\n".join(lines) + "\n"


def _known_keys(data: Mapping[str, Any], where: str) -> None:
    known = {field.name for field in msgspec.structs.fields(Definition)}
    for key in data.keys() - known:
        raise UsageError(
            f"no such key of a machine, in {where}", field=key, value=str(data[key]), mend=closest(key, known)
        )


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
            mend=f"give {', '.join(sorted(plain))}, or those of the thesis: {', '.join(sorted(full))}",
        )
    if known is full:
        return table
    try:
        side_of = msgspec.convert(table, Plain)
    except msgspec.ValidationError as error:
        reason = explained(error, table, where, subject="machine", page=PAGE)
        raise UsageError(
            reason.message, field=f"{side}.{reason.field}", value=reason.value, mend=reason.mend
        ) from error
    return msgspec.to_builtins(side_of.parameters(cores if isinstance(cores, int) and cores > 0 else 1))


def checked(found: Definition) -> Definition:
    """The definition, unless it is what no machine can be: nodes or counts of cores that it has not, or
    bandwidths of nothing. UsageError then.
    """
    if found.nic_node >= found.shape.nodes:
        raise UsageError(
            "is no node of this machine",
            field="nic_node",
            value=found.nic_node,
            mend=f"nodes: 0-{found.shape.nodes - 1}",
        )
    if found.numa_per_socket > found.cores_per_socket:
        raise UsageError(
            f"is more than there are cores ({found.cores_per_socket}) in a socket",
            field="numa_per_socket",
            value=found.numa_per_socket,
            mend="give every node a core",
        )
    if found.remote is not None and found.sockets == 1:
        raise UsageError(
            "a machine of one socket has no remote node",
            field="remote",
            mend="leave the table out, or sockets = 2",
        )
    _check_side(found.local, "local", found.cores_per_socket)
    if found.remote is not None:
        _check_side(found.remote, "remote", found.cores_per_socket)
    return found


def _check_side(p: Parameters, side: str, cores: int) -> None:
    for name in ("t_par_max", "t_seq_max", "t_par_max2", "b_comp_seq", "b_comm_seq"):
        value = getattr(p, name)
        if not (value > 0 and math.isfinite(value)):
            raise UsageError("is no bandwidth", field=f"{side}.{name}", value=value, mend="give MB/s above 0")
    for name in ("n_par_max", "n_seq_max"):
        n = getattr(p, name)
        if not 1 <= n <= cores:
            mend = f"1 to {cores}, the cores of the first socket"
            raise UsageError("is no number of cores", field=f"{side}.{name}", value=n, mend=mend)
    if not 0 < p.alpha <= 1:
        raise UsageError(
            "is no share that is kept", field=f"{side}.alpha", value=p.alpha, mend="above 0, up to 1"
        )
    least = p.t_par_max2 - max(p.delta_r, 0.0) * (cores - p.n_seq_max)
    if not least > p.alpha * p.b_comm_seq:
        raise UsageError(
            f"of {p.b_comm_seq:g} MB/s leaves computations nothing of the {least:g} MB/s of both together",
            field=f"{side}.alpha",
            value=p.alpha,
            mend="give less for what communications keep, or more for both together",
        )


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    return repr(value)
