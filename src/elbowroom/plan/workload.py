"""What a point runs: the interface of every workload, how workloads are found, and how a point is stored.

The workloads themselves are in elbowroom.workloads; no other code asks which of them a point has.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, TypeVar

import msgspec

from elbowroom.errors import UsageError
from elbowroom.machine.topology import Machine
from elbowroom.plugins import Registry, load, package_of, refused

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from elbowroom.machine.assessment import Failure
    from elbowroom.machine.gpu import GpuFacts
    from elbowroom.plan.file import Steady
    from elbowroom.plan.point import AnyPhase, Point, Unit

FIRST_STORED = ("application", "extraneous", "program")
"""Keys that every stored point has, null for other workloads: release 0.1 wrote them so."""

ADDED_BY = "added_by"
"""Under which a stored point names the package of its workload, where it is not elbowroom's own."""

_Mesh = TypeVar("_Mesh")


class Startup(msgspec.Struct, frozen=True, kw_only=True):
    """What a program of apps/ is started with.

    `name` is used in errors; `settings` are written to a JSON file; `patience`: seconds that it may take
    before its `hello` record.
    """

    name: str
    ranks: int
    settings: dict[str, Any]
    patience: float


class OwnContrast(NamedTuple):
    """A source of interference, what it is set to, and what the control has instead (elbowroom explain)."""

    source: str
    setting: str
    control: str


class Workload:
    """What a point runs. Members are msgspec structs, without state.

    A point is passed for where and how the workload runs. What a member does not say is that of a workload
    which the probe answers and which is not compared with anything.
    """

    __slots__ = ()

    key: ClassVar[str] = ""
    """Under which it is stored in a point; empty: the kernel beside messages, which is not stored."""

    @classmethod
    def stored_type(cls) -> Any:
        """The type of its plain data."""
        return cls

    @staticmethod
    def stored_types() -> Mapping[str, Any]:
        """The types of the plain data of all workloads, by key, for the JSON Schema of a point."""
        return {key: member.stored_type() for key, member in members().items() if key}

    @staticmethod
    def decode(plain: Any) -> Workload:
        """The workload of `{key: fields}` (`unstored`); msgspec.ValidationError for other data."""
        [(key, fields)] = plain.items()
        workload: Workload = msgspec.convert(fields, WORKLOADS.get(key).stored_type())
        return workload

    # Names

    def id(self, point: Point) -> str:
        """A readable name, different for different points of a plan."""
        raise NotImplementedError

    @property
    def title(self) -> str:
        """What runs, in tables; empty: the point's kernel."""
        return ""

    def label(self, threads: int) -> str:
        """What runs with so many communication threads, in tables; empty: the point's kernel."""
        return self.title

    def variant_label(self, threads: int) -> str:
        """What sets the point apart from others of its program, in tables; empty: its axes."""
        return ""

    def quantity(self, metric: str) -> str:
        """What is measured, in tables."""
        return metric

    duration: ClassVar[str] = "step"
    """What the side `total` is the duration of."""

    def axes(self) -> dict[str, object]:
        """What tells points with this workload apart, by axis."""
        plain: dict[str, object] = msgspec.to_builtins(self)
        return {f"{self.key}.{name}": value for name, value in plain.items() if not isinstance(value, dict)}

    # Requests

    @property
    def program(self) -> str:
        """What answers: a program of apps/, or the path of an executable or Python script; empty: the
        probe.
        """
        return ""

    @property
    def needs_starpu(self) -> bool:
        """Whether the program runs over StarPU."""
        return False

    needs_gpu: ClassVar[bool] = False
    """Whether an accelerator of this host takes part."""

    def gpu_refusal(self, facts: GpuFacts | Failure) -> str:
        """Why this accelerator, or a host without one, cannot answer it; empty where it can."""
        return ""

    def rank_count(self, point: Point, machine: Machine) -> int:
        """Ranks that measure the point."""
        raise NotImplementedError

    def startup(self, point: Point) -> Startup:
        """What the program is started with; `point` has all communication threads of its group."""
        raise NotImplementedError

    def group(self, point: Point, ranks: int) -> tuple[Hashable, ...]:
        """Equal for points that one start of the probe or program answers."""
        raise NotImplementedError

    @property
    def turn(self) -> tuple[Any, ...]:
        """Groups are measured in this order, of equal ones in the order of the plan."""
        return (0,)

    def sequence(self, point: Point, closing: bool = False, repetition: int = 0) -> tuple[AnyPhase, ...]:
        """The phases of one unit."""
        return point.sequence

    def request(self, point: Point, unit: Unit, steady: Steady) -> dict[str, object]:
        """What the probe or program is sent for one unit (docs/reference/protocol.md)."""
        raise NotImplementedError

    def patience(self, point: Point, unit: Unit, steady: Steady) -> float:
        """Seconds without an answer after which the program is taken to hang, far beyond the slowest
        answer.
        """
        raise NotImplementedError

    # Limits

    def validate(self, point: Point, machine: Machine) -> None:
        """UsageError for what this machine cannot measure."""

    virtual_refusal: ClassVar[str] = ""
    """Why no virtual machine answers it; empty: some do."""

    def partition(self, cut: Callable[[int, int], _Mesh]) -> _Mesh | None:
        """The mesh, cut into the parts of its processes by `cut(cells, processes)`; None without a mesh."""
        return None

    def on_mesh(self, path: str, cells: int) -> Self:
        """On the mesh of a file with so many cells; unchanged for what has no mesh."""
        return self

    # Times, for the estimate only, on the safe side

    def phase_seconds(self, point: Point) -> float:
        """Seconds that a phase measures."""
        raise NotImplementedError

    def long_phases(self, point: Point, unit: Unit) -> int:
        """How many phases of a unit take `phase_seconds`."""
        return len(self.sequence(point, unit.closing))

    def seconds(self, point: Point, unit: Unit) -> float:
        """Seconds that a unit takes, where its memory was touched before."""
        raise NotImplementedError

    def preparation(self, point: Point) -> Mapping[Hashable, float]:
        """Seconds before the first unit, by what is prepared: points with a key in common share it."""
        return {}

    # Comparison and results

    def baseline(self, point: Point) -> frozenset[Hashable]:
        """The baselines alone that the point measures; at the end of a run each is measured again."""
        return frozenset()

    beside_messages: ClassVar[bool] = False
    """Whether a kernel of the probe computes beside its messages."""

    explainable: ClassVar[bool] = True
    """Whether what its sides lose together is the interference that `explain` splits up."""

    @property
    def contrast(self) -> OwnContrast | None:
        """What each point contrasts by itself, its sides alone being the control; None for most."""
        return None

    not_modelled: ClassVar[str] = ""
    """Why models of bandwidths are not fitted to it."""

    has_facts: ClassVar[bool] = False
    """Whether the program's `facts` belong to the point."""

    @property
    def needs_several_threads(self) -> bool:
        """Whether MPI must be started with MPI_THREAD_MULTIPLE."""
        return False

    @property
    def needs_persistent_collectives(self) -> bool:
        """Whether the MPI needs the persistent collectives of MPI 4."""
        return False

    @property
    def call(self) -> str:
        """The function of MPI that it measures; empty for most."""
        return ""

    @property
    def library_progress(self) -> bool:
        """Whether the MPI is started with a progress thread of its own."""
        return False

    @property
    def shares_cores(self) -> bool:
        """Whether two ranks of a host compute on one core, if each communicates from one that computes."""
        return False

    computes_on_comm_core: ClassVar[bool] = False
    """Whether the thread that communicates is one of those that compute."""

    overlaps_calls: ClassVar[bool] = False
    """Whether its answers have the times of all ranks in each iteration (stats/overlap)."""

    @property
    def overlaps(self) -> bool:
        """Whether it is a step whose communication is overlapped with its computation."""
        return False

    def with_losses(self, losses: Callable[[], Any]) -> Self:
        """With the loss ratios that a model predicts, where it uses any."""
        return self

    @property
    def sizes(self) -> Sequence[int]:
        """Sizes of a window of accesses, bytes, each with one-way times of its own; empty without."""
        return ()

    @property
    def accessing_ranks(self) -> tuple[str, ...]:
        """Which of sender, receiver and bystanders access memory between messages."""
        return ()


def register(member: type[Workload]) -> type[Workload]:
    """Makes a workload known by its key; a second one with that key is an error."""
    if _MEMBERS.setdefault(member.key, member) is not member:
        raise ValueError(f"two workloads are stored as {member.key!r}")
    return member


_MEMBERS: dict[str, type[Workload]] = {}


@cache
def members() -> Mapping[str, type[Workload]]:
    """elbowroom's own workloads by key; imports elbowroom.workloads, where they register themselves."""
    import_module("elbowroom.workloads")
    return _MEMBERS


def _added(entry: EntryPoint) -> type[Workload]:
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


@cache
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
