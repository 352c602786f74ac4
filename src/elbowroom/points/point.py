"""What is measured: a point, the workload that it runs, and how both are stored.

The workloads themselves are in the other files of this package; no other code asks which of them a point has.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint
from pathlib import Path
from pkgutil import iter_modules
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Protocol, TypeVar, Union

import msgspec
from msgspec import Meta

from elbowroom.errors import UsageError
from elbowroom.machine.gpu import GpuFacts
from elbowroom.machine.state import Failure
from elbowroom.machine.topology import Machine
from elbowroom.plugins import Registry, load, package_of, refused
from elbowroom.points.payload import SIDES, Collected, MeasuredSide, Payload, Records, Role, common_fields
from elbowroom.points.unit import Startup, Unit

Metric = Literal["latency", "bandwidth"]
Pattern = Literal["pingpong", "receive", "bidirectional", "ring"]
Reuse = Literal["same", "rotate", "off-cache"]
Phase = Literal["A", "B", "AB", "S"]
StreamPhase = Literal["C", "AC", "BC", "ABC"]
"""Phases with a third stream C, alone and beside the two sides."""
AnyPhase = Phase | StreamPhase
Processes = Literal["node", "socket", "core"]
"""What each process has of its own: a node, a socket, or a computing core and one to communicate."""
Variant = Literal["none", "communication", "apart", "overlap"]


SETTINGS = ("core_khz", "uncore_khz", "turbo", "governor")
"""Fields of a point that are held on every host; None: as it is."""

FIRST_STORED = ("application", "extraneous", "program")
"""Keys that every stored point has, null for other workloads: release 0.1 wrote them so."""

ADDED_BY = "added_by"
"""Under which a stored point names the package of its workload, where it is not elbowroom's own."""


class Steady(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Steady state (method.md, rule 2): samples of the moving window, its coefficient of variation, seconds
    to wait.
    """

    window: Annotated[int, Meta(ge=2)] = 7
    cov: Annotated[float, Meta(gt=0, lt=1)] = 0.05
    limit: Annotated[float, Meta(gt=0)] = 1.0


USUAL = Steady()


class Needs(NamedTuple):
    """What a workload needs: a program over StarPU, MPI_THREAD_MULTIPLE, the persistent form of a function of
    MPI 4 (its name), an MPI that runs a progress thread of its own.

    `gpu`: why an accelerator, or a host without one, cannot answer it (empty where it can); None: it needs
    none. `shared_core`: whether ranks of a host take turns on a core; None: if their threads are on one.
    """

    gpu: Callable[[GpuFacts | Failure], str] | None = None
    starpu: bool = False
    several_threads: bool = False
    persistent_call: str = ""
    library_progress: bool = False
    shared_core: bool | None = None


class OwnContrast(NamedTuple):
    """A source of interference, what it is set to, and what the control has instead (elbowroom explain)."""

    source: str
    setting: str
    control: str


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What sets a kind of workload apart.

    `beside_messages`: a kernel of the probe computes beside its messages. `explainable`: what its sides lose
    together is the interference that `explain` splits up. `contrast`: what each point contrasts by itself,
    its sides alone being the control. `without_model`: why models of bandwidths are not fitted to it.
    `program_facts`: the `facts` of its program belong to the point. `computes_on_comm_core`: the thread that
    communicates is one of those that compute. `quantity`: what is measured, in tables (empty: the point's
    metric); `duration`: what the side `total` is the duration of. `order`: when its groups are measured:
    with the probe's in the order of the plan, or after them, sorted by their keys or not.
    """

    beside_messages: bool = False
    explainable: bool = True
    contrast: OwnContrast | None = None
    without_model: str = ""
    program_facts: bool = False
    computes_on_comm_core: bool = False
    quantity: str = ""
    duration: str = "step"
    order: Literal["planned", "last", "last, sorted"] = "planned"


class Times(NamedTuple):
    """How long a unit takes, on the safe side: `phases` of them measure for `phase` seconds each; the whole
    unit takes `unit` seconds where its memory was touched before. `patience`: seconds without an answer after
    which the program is taken to hang, far beyond the slowest answer. `preparation`: seconds before the first
    unit, by what is prepared; points with a key in common share it.
    """

    phase: float
    phases: int
    unit: float
    patience: float
    preparation: Mapping[Hashable, float] = {}


class Labels(NamedTuple):
    """A point in tables: what runs, and what sets it apart from others of its program; empty: its kernel and
    axes.
    """

    what: str = ""
    variant: str = ""


class Workload:
    """What a point runs. Members are msgspec structs, without state.

    A point is passed for where and how the workload runs. Defaults describe a workload that runs in the probe
    and has no baseline.
    """

    __slots__ = ()

    key: ClassVar[str] = ""
    """Under which it is stored in a point; empty: the kernel beside messages, which is not stored."""

    facts: ClassVar[Facts] = Facts()

    @staticmethod
    def stored_types() -> Mapping[str, Any]:
        """The types of the plain data of all workloads, by key, for the JSON Schema of a point."""
        return {key: _stored_type(member) for key, member in members().items() if key}

    @staticmethod
    def decode(plain: Any) -> Workload:
        """The workload of `{key: fields}` (`unstored`); msgspec.ValidationError for other data."""
        [(key, fields)] = plain.items()
        workload: Workload = msgspec.convert(fields, _stored_type(WORKLOADS.get(key)))
        return workload

    # Names

    def id(self, point: Point) -> str:
        """A readable name, different for different points of a plan."""
        raise NotImplementedError

    @property
    def title(self) -> str:
        """What runs, in tables; empty: the point's kernel."""
        return ""

    def labels(self, threads: int) -> Labels:
        """What runs with so many communication threads, in tables."""
        return Labels(self.title)

    # Requests

    @property
    def program(self) -> str:
        """What answers: a program of apps/, or the path of an executable or Python script; empty: the
        probe.
        """
        return ""

    @property
    def needs(self) -> Needs:
        """What it needs of the host and of MPI."""
        return Needs()

    def rank_count(self, point: Point, machine: Machine) -> int:
        """Ranks that measure the point."""
        raise NotImplementedError

    def startup(self, point: Point) -> Startup:
        """What the program is started with; `point` has all communication threads of its group."""
        raise NotImplementedError

    def group(self, point: Point, ranks: int) -> tuple[Hashable, ...]:
        """Equal for points that one start of the probe or program answers."""
        raise NotImplementedError

    def sequence(self, point: Point, closing: bool = False, repetition: int = 0) -> tuple[AnyPhase, ...]:
        """The phases of one unit."""
        return point.sequence

    def request(self, point: Point, unit: Unit, steady: Steady) -> dict[str, object]:
        """What the probe or program is sent for one unit (docs/reference/protocol.md)."""
        raise NotImplementedError

    def times(self, point: Point, closing: bool = False, steady: Steady = USUAL) -> Times:
        """How long a unit takes, about."""
        raise NotImplementedError

    # Limits and baselines

    def validate(self, point: Point, machine: Machine) -> None:
        """UsageError for what this machine cannot measure."""

    virtual_refusal: ClassVar[str] = ""
    """Why no virtual machine answers it; empty: some do."""

    def baseline(self, point: Point) -> frozenset[Hashable]:
        """The baselines alone that the point measures; at the end of a run each is measured again."""
        return frozenset()

    # Results

    sides: ClassVar[Mapping[str, MeasuredSide]] = SIDES
    """What its phases measure, by key of a phase."""

    payload: ClassVar[type[Payload]] = Payload
    """What a point measures besides its two sides."""

    def collect(self, point: Point, records: Records) -> Collected:
        """What its records say besides the two sides."""
        return Collected(self.fill(point, records))

    def fill(self, point: Point, records: Records, **more: Any) -> Any:
        """The payload with what any answer may hold, and with `more` fields of its own."""
        fields = common_fields(records, point.use_of_core)
        if not self.facts.program_facts:
            del fields["facts"]
        return self.payload(**fields, **more)


def _stored_type(member: type[Workload]) -> Any:
    """The type of its plain data; of a workload with several programs, told apart by a tag, any of these."""
    tagged = [one for one in _subclasses(member) if one.__struct_config__.tag]  # type: ignore[attr-defined]
    return Union[tuple(tagged)] if tagged else member  # noqa: UP007


def _subclasses(member: type[Workload]) -> Iterator[type[Workload]]:
    for one in member.__subclasses__():
        yield one
        yield from _subclasses(one)


def register(member: type[Workload]) -> type[Workload]:
    """Makes a workload known by its key; a second one with that key is an error."""
    if _MEMBERS.setdefault(member.key, member) is not member:
        raise ValueError(f"two workloads are stored as {member.key!r}")
    return member


_MEMBERS: dict[str, type[Workload]] = {}


@cache
def members() -> Mapping[str, type[Workload]]:
    """elbowroom's own workloads by key: each file of this package registers its own."""
    for module in iter_modules([str(Path(__file__).parent)]):
        import_module(f"{__package__}.{module.name}")
    return _MEMBERS


OF_RESULTS = frozenset(
    {"added_by", "arithmetic_intensity", "comm", "comm_threads", "comp", "flags", "id", "reason", "status",
     "store_factor"}
)  # fmt: skip
"""Keys that every point of a document has besides its axes, its workload and its payload."""


def own_columns(payload: type[Payload]) -> frozenset[str]:
    """The keys of documents that only this kind of payload has."""
    return frozenset(payload.__struct_fields__) - frozenset(Payload.__struct_fields__)


def _added(entry: EntryPoint) -> type[Workload]:
    """The workload of an installed package. UsageError if it is none, or if a key of its payload is taken."""
    member = _loaded(entry)
    taken = dict.fromkeys((*OF_RESULTS, *Point.__struct_fields__, *WORKLOADS.names()), "every result")
    for own in members().values():
        taken |= dict.fromkeys(own_columns(own.payload), f"the workload {own.key!r}")
    for other in WORKLOADS.declared().by_name.values():
        if other.name != entry.name:
            with suppress(UsageError):
                taken |= dict.fromkeys(own_columns(_loaded(other).payload), package_of(other))
    for key in sorted(own_columns(member.payload) & taken.keys()):
        raise refused(entry, f"declares a payload with the key {key!r}, which {taken[key]} has")
    return member


def _loaded(entry: EntryPoint) -> type[Workload]:
    member = load(entry)
    if not isinstance(member, type) or not issubclass(member, Workload) or member.key != entry.name:
        raise refused(entry, f"is not a Workload with the key {entry.name!r}")
    return member


WORKLOADS: Registry[type[Workload]] = Registry(
    "workloads",
    "workload",
    built_in=lambda: tuple(members()),
    own=lambda key: members()[key],
    added=_added,
)
"""All workloads by key: elbowroom's own, and those of installed packages."""


def kernel_beside_messages() -> Workload:
    """What a point runs that says nothing else."""
    return members()[""]()


def stored(point: msgspec.Struct, workload: Workload) -> dict[str, Any]:
    """Plain data of a point, or of its result, in the stored form: what it runs is under its key, and the
    package that adds a workload under `added_by`.
    """
    plain: dict[str, Any] = msgspec.to_builtins(point)
    fields = plain.pop("workload")
    plain |= dict.fromkeys(FIRST_STORED)
    if workload.key:
        plain[workload.key] = fields
    added = WORKLOADS.declared().by_name.get(workload.key)
    if added is not None:
        plain[ADDED_BY] = {workload.key: package_of(added)}
    return plain


def unstored(plain: Any) -> Any:
    """Plain data for msgspec.convert, of a point in the stored form; other data stays as it is. UsageError
    for a workload whose package is not installed.
    """
    if not isinstance(plain, dict):
        return plain
    point = dict(plain)
    names = WORKLOADS.names()
    added_by = point.pop(ADDED_BY, None)
    for key, package in added_by.items() if isinstance(added_by, dict) else ():
        if key not in names:
            raise UsageError(
                f"is a workload of the package {package}, which is not installed",
                field="workload",
                value=key,
                hint=f"install it: pip install {package}",
            )
    for key in names:
        value = point.pop(key, None)
        if value is not None:
            point["workload"] = {key: value}
    return point


class Placement(msgspec.Struct, frozen=True, kw_only=True):
    """Where one rank computes and communicates (used by `ring` with several processes per host)."""

    rank: int
    comp_cores: tuple[int, ...]
    comm_cores: tuple[int, ...]
    comp_node: int
    comm_node: int


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """One combination of the axes of a plan. Cores and nodes carry the operating system's numbers.

    `size` and `working_set` are bytes; `working_set` is per computing core, all arrays together; `n_other` of
    the `n` computing cores are of another socket than the first, where a plan tells points apart by that;
    `placements` say where each process of a host is; `workload` is what runs (a kernel beside messages; for
    others `kernel` is `none`); `role` is `point` for what the plan measures and `control` for the
    register-only kernel that shows whether the machine was quiet (docs/design/method.md, rule 15).
    """

    plan: str
    kernel: str
    n: int
    size: int
    comp_node: int
    comm_node: int
    comm_core: int
    metric: Metric
    comp_cores: tuple[int, ...] = ()
    comm_cores: tuple[int, ...] = ()
    peer_cores: tuple[int, ...] = ()
    pattern: Pattern = "pingpong"
    cursor: int = 1
    working_set: int = 0
    reuse: Reuse = "same"
    computing_ranks: Literal["first", "all"] = "first"
    processes: Processes = "node"
    placements: tuple[Placement, ...] = ()
    core_khz: int | None = None
    uncore_khz: int | None = None
    turbo: bool | None = None
    governor: str | None = None
    role: Literal["point", "control"] = "point"
    sequence: tuple[Phase, ...] = ("A", "B", "AB", "AB", "B", "A")
    window: float = 0.12
    message_period: float = 0.0
    observe: tuple[str, ...] = ()
    scheduling: bool = False
    n_other: int = 0
    workload: Workload = msgspec.field(default_factory=kernel_beside_messages)

    @property
    def id(self) -> str:
        """A readable name, equal for equal points and different for different ones within a plan."""
        return self.workload.id(self)

    def plain(self) -> dict[str, Any]:
        """Plain data, as in a manifest."""
        return stored(self, self.workload)

    @property
    def comm_threads(self) -> int:
        """Threads that communicate on a host."""
        return max(1, len(self.comm_cores))

    def use_of_core(self, core: int) -> Role:
        """What a core does."""
        if core in (*self.comm_cores, *self.peer_cores, self.comm_core):
            return "communication"
        return "computing" if core in self.comp_cores else "idle"

    @property
    def settings(self) -> dict[str, int | bool | str]:
        """What every host of the job holds while the point is measured, by the names of machine.Settings."""
        held = {name: getattr(self, name) for name in SETTINGS}
        return {name: value for name, value in held.items() if value is not None}


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the plan that this machine cannot answer (`n/a`), or that there was no time for (`left out`),
    and why.
    """

    what: str
    status: Literal["n/a", "left out"] = "n/a"
    reason: str


class Expansion(msgspec.Struct, frozen=True, kw_only=True):
    """A plan expanded for a machine: the points that can be measured and the notes for those that cannot."""

    points: tuple[Point, ...]
    notes: tuple[Note, ...]


class _HasWorkload(Protocol):
    @property
    def workload(self) -> Workload: ...


_Item = TypeVar("_Item", bound=_HasWorkload)
_Member = TypeVar("_Member", bound=Workload)


def running(items: Iterable[_Item], member: type[_Member]) -> list[tuple[_Item, _Member]]:
    """The points or results that run a workload of an experiment's own, each with it."""
    return [(item, item.workload) for item in items if isinstance(item.workload, member)]
