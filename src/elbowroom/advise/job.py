"""A job's step on one node, how it runs now, and what it may choose; as TOML (docs/reference/advice.md).

`JobFile` is the type of job.toml: a job in which sizes may be texts, and one value stands for a list of one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Union

import msgspec
from msgspec import Meta

from elbowroom.advise.collectives import FORMS, POLICIES, Collective, Form, Progress, Way, check_collective
from elbowroom.documents import TomlFormat, parse_toml
from elbowroom.errors import UsageError
from elbowroom.models.load import Direction
from elbowroom.plan.kernels import find
from elbowroom.quantities import parse_cores, parse_size

Every = Literal["every"]
Best = Literal["best"]
Count = Annotated[int, Meta(ge=0)]
Positive = Annotated[float, Meta(gt=0)]
Share = Annotated[float, Meta(ge=0, le=1)]

PAGE = "`elbowroom help advise`"
BEST: Best = "best"


class MeasuredComputation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """T_M as it was measured: the computation of a step alone took `seconds` on these cores and this node."""

    seconds: Positive
    cores: Count
    comp_node: Count
    cores_other: Count = 0
    comp_node_other: Count | None = None


SURFACE = 2 / 3
"""Parts of a mesh in space: their surface is a power 2/3 of their volume."""


class JobStep(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one step does on one node. The computation is one of: `comp_bytes` of memory moved by all cores,
    counted as the model's kernel counts its own; `comp_flops` at `intensity`; `t_comp`.

    `comm_bytes`: of all messages, in both directions where `direction` is `both`; `intensity`: flop/B (0:
    nothing but memory accesses); `separator`: share of the computation that comes before the communication.
    All of it on as many nodes as the job has now. With more, a node computes as much less, and its messages
    shrink with the power `comm_exponent` of their number: 2/3 as surfaces do, 0 as in slices.
    """

    comm_bytes: float
    comp_bytes: float | None = None
    comp_flops: float | None = None
    t_comp: MeasuredComputation | None = None
    intensity: Annotated[float, Meta(ge=0)] = 0.0
    direction: Direction = "receive"
    separator: Annotated[float, Meta(ge=0, lt=1)] = 0.0
    comm_exponent: Annotated[float, Meta(ge=0, le=1)] = SURFACE

    @property
    def moved(self) -> float | None:
        """Bytes that the computation moves; None where only its time is known."""
        if self.comp_flops is not None:
            return self.comp_flops / self.intensity
        return self.comp_bytes


class Setup(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a job runs. `cores` of the first, `cores_other` of the second socket compute on data of `comp_node`
    (those of the second on `comp_node_other`, where given); messages of `size` bytes (None: the model's) go
    by `comm_threads` threads of each of `processes` of a node, on cores of `comm_socket` (None: the last
    one), between the network and `comm_node`. `overlap`: both at once. `w`: share of the computation on the
    accelerator; best: whatever takes least; `nodes`: how many share the job. `form` and `progress`: how the
    collective is called, and what makes it proceed.
    """

    cores: Count
    comp_node: Count
    comm_node: Count
    cores_other: Count = 0
    comp_node_other: Count | None = None
    comm_socket: Count | None = None
    size: int | None = None
    comm_threads: Annotated[int, Meta(ge=1)] = 1
    processes: Annotated[int, Meta(ge=1)] = 1
    overlap: bool = True
    w: Share | Best = 0.0
    nodes: Annotated[int, Meta(ge=1)] = 1
    form: Form = "blocking"
    progress: Progress = "none"

    @property
    def communicating(self) -> int:
        """Threads of a node that communicate."""
        return self.comm_threads * self.processes

    @property
    def way(self) -> Way:
        """How the collective is called."""
        return self.form, self.progress


AXES = tuple(field.name for field in msgspec.structs.fields(Setup))
"""What can be chosen, in the order in which it is printed."""


class May(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What each axis of `Setup` may be besides what it is now; None: it stays."""

    cores: tuple[Count, ...] | Every | None = None
    cores_other: tuple[Count, ...] | Every | None = None
    comp_node: tuple[Count, ...] | Every | None = None
    comp_node_other: tuple[Count, ...] | Every | None = None
    comm_node: tuple[Count, ...] | Every | None = None
    comm_socket: tuple[Count, ...] | Every | None = None
    comm_threads: tuple[Annotated[int, Meta(ge=1)], ...] | None = None
    processes: tuple[Annotated[int, Meta(ge=1)], ...] | None = None
    size: tuple[int, ...] | None = None
    overlap: tuple[bool, ...] | None = None
    w: tuple[Share, ...] | Best | None = None
    nodes: tuple[Annotated[int, Meta(ge=1)], ...] | None = None
    form: tuple[Form, ...] | Every | None = None
    progress: tuple[Progress, ...] | Every | None = None


class Accelerator(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the accelerators do alone: all of a step's computation in `seconds`, or `bandwidth` MB/s of it."""

    seconds: Positive | None = None
    bandwidth: Positive | None = None


class Verification(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the advice is checked: by `command`, with the setup's values in braces, whose wall time counts or
    the seconds that `number` (a regular expression with one group) finds in its output; without it by the
    probe, which computes `kernel` (None: the model's) beside messages that go by `pattern` (None: received
    two at a time where both setups have the model's size, else to and fro one at a time).
    """

    command: str | None = None
    number: str | None = None
    kernel: str | None = None
    pattern: Literal["receive", "pingpong"] | None = None


class Job(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A job; `accelerator`, `collective` None: there is none."""

    name: str
    step: JobStep
    now: Setup
    may: May
    accelerator: Accelerator | None = None
    collective: Collective | None = None
    verify: Verification = Verification()


_WORDS = {"form": " or ".join(FORMS), "progress": " or ".join(POLICIES)}
_NUMBERS = (
    "cores",
    "cores_other",
    "comp_node",
    "comp_node_other",
    "comm_node",
    "comm_socket",
    "comm_threads",
    "processes",
    "nodes",
)


JOB = TomlFormat(
    kind=Job,
    field="job",
    of="a job",
    inside="a job",
    amounts=("step.comp_bytes", "step.comm_bytes", "collective.size"),
    sizes=("now.size",),
    words=_WORDS,
    page=PAGE,
)


def decode(text: str, where: str) -> Job:
    """A job from TOML; `where` names it in errors, which also tell field, value and hint."""
    return of_data(parse_toml(text, field="job", where=where), where)


def of_data(data: Mapping[str, Any], where: str = "the job") -> Job:
    """A job from plain data, as TOML gives it: sizes may be `64MB`, counts `1-8`."""
    job = JOB.decode(data, where, lambda plain: _normal(plain, where))
    check(job)
    return job


def _normal(data: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The data with its name, and with lists of numbers read."""
    normal = {"name": where, "may": {}, **data}
    now, may = normal.get("now"), normal["may"]
    if isinstance(may, dict):
        _check_present_given(may, now)
        normal["may"] = {key: _values(key, value) for key, value in may.items()}
    return normal


def _check_present_given(may: Mapping[str, Any], now: Any) -> None:
    """What may change must be said as it is now: a default would decide what the gain is measured from."""
    for axis in may:
        if isinstance(now, dict) and axis not in now:
            raise UsageError(
                "is missing, although [may] lets it change",
                field=f"now.{axis}",
                hint="give its present value",
            )


def _values(axis: str, value: Any) -> Any:
    """One value stands for a list of one; `1-8` for a list of counts."""
    if value in ("every", BEST):
        return value
    listed = value if isinstance(value, list | tuple) else [value]
    if axis == "size":
        return [parse_size(item, "may.size") if isinstance(item, str) else item for item in listed]
    if axis in _NUMBERS:
        return [
            n
            for item in listed
            for n in (parse_cores(item, f"may.{axis}") if isinstance(item, str) else (item,))
        ]
    return listed


def check(job: Job) -> None:
    """Refuses a job that is incomplete or contradictory or has nothing to choose, on any machine."""
    _check_step(job)
    _check_now(job)
    _check_may(job)
    check_collective(job.collective, job.now.way, (job.may.form, job.may.progress))
    _check_verify(job.verify)


def _check_verify(verify: Verification) -> None:
    if verify.kernel is not None and find(verify.kernel) is None:
        raise UsageError(
            "is not a kernel that computes", field="verify.kernel", value=verify.kernel, hint="choose another"
        )
    for key, with_command in (("number", True), ("kernel", False), ("pattern", False)):
        value = getattr(verify, key)
        if value is not None and (verify.command is not None) != with_command:
            where = "with verify.command" if with_command else "without verify.command"
            raise UsageError(
                f"is only valid {where}", field=f"verify.{key}", value=value, hint="remove one of them"
            )
    if verify.number is not None:
        try:
            groups = re.compile(verify.number).groups
        except re.error as error:
            raise UsageError(
                f"is not a regular expression ({error})",
                field="verify.number",
                value=verify.number,
                hint="correct it",
            ) from error
        if groups != 1:
            raise UsageError(
                f"has {groups} groups, not one",
                field="verify.number",
                value=verify.number,
                hint="put parentheses around the number only: step (\\S+) s",
            )


def _check_step(job: Job) -> None:
    step = job.step
    given = [key for key in ("comp_bytes", "comp_flops", "t_comp") if getattr(step, key) is not None]
    if len(given) != 1:
        problem = (
            f"{' and '.join(given)} exclude each other" if given else "does not define what a step computes"
        )
        hint = "give one of comp_bytes, comp_flops with intensity, t_comp"
        raise UsageError(problem, field="step", hint=hint)
    if step.comp_flops is not None and step.intensity == 0:
        raise UsageError("is missing", field="step.intensity", hint="give flop/B beside comp_flops")
    for key, what in (("comp_bytes", "computes"), ("comp_flops", "computes"), ("comm_bytes", "communicates")):
        value = getattr(step, key)
        if key == "comm_bytes" and value == 0 and job.collective is not None:
            continue
        if value is not None and not (value > 0 and math.isfinite(value)):
            raise UsageError(
                f"a step that {what} nothing has nothing to overlap" if value == 0 else "is not an amount",
                field=f"step.{key}",
                value=value,
                hint="give the positive amount of one step on one node",
            )


def _check_now(job: Job) -> None:
    now = job.now
    if now.cores + now.cores_other == 0:
        raise UsageError(
            "at least one computing core is needed", field="now.cores", value=0, hint="give at least one"
        )
    if now.size is not None and now.size < 1:
        raise UsageError("a message is at least 1 B", field="now.size", value=now.size, hint="write 64KiB")
    if job.accelerator is None and (now.w != 0 or job.may.w is not None):
        where = "may.w" if job.may.w is not None else "now.w"
        raise UsageError(
            "no accelerator is described", field=where, hint="add [accelerator] with seconds or bandwidth"
        )
    if job.accelerator is not None:
        if (job.accelerator.seconds is None) == (job.accelerator.bandwidth is None):
            raise UsageError(
                "needs either seconds or bandwidth", field="accelerator", hint="give one of the two"
            )
        if now.w == 0 and job.may.w is None:
            raise UsageError("has no work", field="accelerator", hint='give now.w, or may.w = "best"')


def _check_may(job: Job) -> None:
    given = {name: value for name, value in msgspec.structs.asdict(job.may).items() if value is not None}
    for axis, values in given.items():
        if values == ():
            raise UsageError("lists no value", field=f"may.{axis}", hint="list one, or remove the key")
        if axis == "size" and min(values) < 1:
            raise UsageError(
                "a message is at least 1 B", field="may.size", value=min(values), hint="write 64KiB"
            )
    free = [
        axis
        for axis, values in given.items()
        if isinstance(values, str) or set(values) != {getattr(job.now, axis)}
    ]
    if not free:
        raise UsageError(
            "leaves nothing to choose" if given else "is empty, so there is nothing to choose",
            field="may",
            hint=f'list what may change, for example cores = "every"; known: {", ".join(AXES)}',
        )


SizeText = Annotated[str, Meta(description="a size: 64KiB, 64MB")]
CountText = Annotated[str, Meta(description="counts, such as 1-8, or every")]


def as_written(kind: type[msgspec.Struct], **written: tuple[Any, ...]) -> Any:
    """The type with other types, and defaults where there are any, of some of its fields."""
    fields = {
        field.name: (field.type,) if field.required else (field.type, field.default)
        for field in msgspec.structs.fields(kind)
    } | written
    listed: list[Any] = [(name, *rest) for name, rest in fields.items()]
    space = {"__doc__": kind.__doc__}
    return msgspec.defstruct(kind.__name__, listed, namespace=space, kw_only=True, forbid_unknown_fields=True)


def _one_or_more(*kinds: Any) -> tuple[Any, None]:
    item: Any = Union[kinds]  # noqa: UP007
    return Union[tuple.__class_getitem__((item, ...)), item, None], None  # noqa: UP007


_COUNTS = ("cores", "cores_other", "comp_node", "comp_node_other", "comm_node", "comm_socket")

JobFile: type[msgspec.Struct] = as_written(
    Job,
    name=(str, ""),
    step=(as_written(JobStep, comm_bytes=(float | SizeText,), comp_bytes=(float | SizeText | None, None)),),
    now=(as_written(Setup, size=(int | SizeText | None, None)),),
    may=(
        as_written(
            May,
            **dict.fromkeys(_COUNTS, _one_or_more(Count, CountText)),
            comm_threads=_one_or_more(Annotated[int, Meta(ge=1)], CountText),
            processes=_one_or_more(Annotated[int, Meta(ge=1)], CountText),
            nodes=_one_or_more(Annotated[int, Meta(ge=1)], CountText),
            size=_one_or_more(int, SizeText),
            overlap=_one_or_more(bool),
            form=_one_or_more(Form, Every),
            progress=_one_or_more(Progress, Every),
            w=(tuple[Share, ...] | Share | Best | None, None),
        ),
    ),
    collective=(as_written(Collective, size=(int | SizeText,)) | None, None),
)
