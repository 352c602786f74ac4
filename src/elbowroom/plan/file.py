"""Plans as plain data: the keys that every plan has, and those of its experiment, checked key by key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta

from elbowroom.documents import check_keys, convert
from elbowroom.errors import UsageError, closest
from elbowroom.plan.kernels import find
from elbowroom.points.point import Metric, Pattern, Phase, Reuse, Steady
from elbowroom.quantities import LONGEST, MOST_REPETITIONS, parse_duration, parse_period, parse_size

T = TypeVar("T", bound=msgspec.Struct)

_BYTES = {"unit": "B"}
Positive = Annotated[int, Meta(ge=1)]
Natural = Annotated[int, Meta(ge=0)]
Size = Annotated[int, Meta(ge=1, extra=_BYTES)]
"""Bytes, which a plan may write as `64MiB`."""
SizeOrNone = Annotated[int, Meta(ge=0, extra=_BYTES)]
"""A size, or 0 bytes."""
Count = Positive | Literal["every", "few", "half", "all"]
NodeChoice = Natural | Literal["near", "far", "every"]
CommNodeChoice = Natural | Literal["near", "far", "every", "same"]
CommCoreChoice = Natural | Literal["last", "near", "far"]


class PlanSweep(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of a plan with axes of its own; what is None is the plan's."""

    kernels: tuple[str, ...] | None = None
    n: tuple[Count, ...] | None = None
    sizes: tuple[Size, ...] | None = None
    cursors: tuple[Positive, ...] | None = None
    comm_threads: tuple[Positive, ...] | None = None


class NoKeys(msgspec.Struct, frozen=True):
    """Of an experiment for which the common keys of a plan are enough."""


class Plan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to measure: an experiment and its axes. Sizes are bytes, `window` seconds, frequencies kHz.

    `n`: numbers of computing cores, or `every`, `few` (one seventh, the paper's 5 of 35), `half`, `all`.
    `budget`: seconds from the command to the report on a real machine, 0 without limit (docs/guide/plans.md);
    `starts`: how often the program is started anew, each start with its share of the repetitions;
    `precision`: half width of the intervals of ln(kept) at which a run with a budget stops early, 0 never.
    Nodes: numbers, or `near` (the NIC), `far`, `every`; `comm_nodes` may be `same` as the computations'.
    `comm_cores`: cores of the communication thread, or `last`, `near`, `far`. `around`: adds each power of
    two from 64 B minus and plus that many bytes (method.md, rule 13). `pool`: where computing cores come from
    when `comp_cores` does not name them. `scaling`: each core has arrays of its own (`weak`), or all cores
    share those of one (`strong`). `computing_ranks`: rank 0 alone computes, or all ranks. `message_period`:
    seconds from the time at which a message is due to that of the next one, 0 for messages in batches, each
    sent as soon as the one before is answered. `keys`: those of the plan's experiment, as its own type.
    `quick`: plain data of the keys that `run --quick` changes, with a table `keys`; empty: no such form.
    """

    name: str
    experiment: str
    question: str = ""
    kernels: tuple[str, ...] = ("triad",)
    n: tuple[Count, ...] = ("all",)
    sizes: tuple[Size, ...] = (4, 64_000_000)
    around: Natural = 0
    cursors: tuple[Positive, ...] = (1,)
    comm_threads: tuple[Positive, ...] = (1,)
    comp_nodes: tuple[NodeChoice, ...] = ("near",)
    comm_nodes: tuple[CommNodeChoice, ...] = ("same",)
    comm_cores: tuple[CommCoreChoice, ...] = ("last",)
    comp_cores: tuple[Natural, ...] = ()
    peer_core: Natural | None = None
    pool: Literal["machine", "socket"] = "machine"
    metric: Literal["auto"] | Metric = "auto"
    pattern: Pattern = "pingpong"
    reuse: Reuse = "same"
    sequence: tuple[Phase, ...] = ("A", "B", "AB", "AB", "B", "A")
    observe: tuple[str, ...] = ()
    working_set: SizeOrNone = 0
    scaling: Literal["weak", "strong"] = "weak"
    computing_ranks: Literal["first", "all"] = "first"
    repetitions: Annotated[int, Meta(ge=1, le=MOST_REPETITIONS)] = 10
    starts: Annotated[int, Meta(ge=1, le=MOST_REPETITIONS)] = 1
    budget: Annotated[float, Meta(ge=0, le=LONGEST)] = 0.0
    precision: Annotated[float, Meta(ge=0, lt=1)] = 0.0
    window: Annotated[float, Meta(gt=0, le=600)] = 0.12
    message_period: Annotated[float, Meta(ge=0, le=60)] = 0.0
    steady: Steady = Steady()
    seed: Natural = 1
    control: bool = True
    scheduling: bool = False
    hosts: Positive = 1
    sweeps: tuple[PlanSweep, ...] = ()
    keys: Any = NoKeys()
    quick: dict[str, Any] = {}

    def plain(self) -> dict[str, Any]:
        """Plain data, as in a manifest: keys of the experiment are among the others; `quick` is left out."""
        data: dict[str, Any] = msgspec.to_builtins(self)
        del data["quick"]
        keys: dict[str, Any] = data.pop("keys")
        return data | keys


class Rules(NamedTuple):
    """How people may write the keys of a struct: `lists` as one value, `sizes` with units (true: or as 0),
    fields as one of their `words`.
    """

    lists: frozenset[str]
    sizes: Mapping[str, bool]
    words: Mapping[str, str]


@cache
def rules(kind: type[msgspec.Struct]) -> Rules:
    """The rules for the keys of a plan, of a sweep, or of an experiment, by their types."""
    hints = get_type_hints(kind, include_extras=True)
    parts = {name: tuple(_parts(hint)) for name, hint in hints.items()}
    return Rules(
        lists=frozenset(name for name in parts if any(get_origin(part) is tuple for part in parts[name])),
        sizes={
            name: part.ge == 0
            for name in parts
            for part in parts[name]
            if isinstance(part, Meta) and part.extra is _BYTES
        },
        words={
            name: ", ".join(filter(None, (_NUMBERS.get(name), *words)))
            for name in parts
            if (words := [part for part in parts[name] if isinstance(part, str)])
        },
    )


def _parts(hint: Any) -> Iterator[Any]:
    """A type and all that it is made of: types, limits, words."""
    yield hint
    for part in get_args(hint):
        yield from _parts(part)


_NUMBERS = {
    "n": "whole numbers from 1",
    "comp_nodes": "node numbers",
    "comm_nodes": "node numbers",
    "comm_cores": "core numbers",
}
"""What fields accept beside words."""


def fields(kind: type[msgspec.Struct]) -> frozenset[str]:
    """The keys of a struct."""
    return frozenset(kind.__struct_fields__)


def is_default(key: str, value: Any, kind: type[msgspec.Struct]) -> bool:
    """Whether a plan without the key of this experiment has that value too."""
    default = next(field.default for field in msgspec.structs.fields(kind) if field.name == key)
    values = (default, _normal({key: value}, kind).get(key, default))
    known, given = (list(item) if isinstance(item, tuple) else item for item in values)
    return bool(known == given)


def decode(raw: Mapping[str, Any], kind: type[msgspec.Struct] = NoKeys) -> Plan:
    """A plan from plain data, with its experiment's keys as `kind`. A scalar stands for a list of one; sizes
    may be `64MiB`. Keys of the experiment are in the table `keys`; in manifests they are among the others.
    """
    check_keys(raw, fields(Plan) | fields(kind), of="a plan")
    data = _normal(raw, Plan)
    keys = {name: data.pop(name) for name in fields(kind) & data.keys()}
    table = convert(data.pop("keys", {}), dict[str, Any], subject="keys", hint="write a table: [keys]")
    check_keys(table, fields(kind), of=str(data.get("experiment")), prefix="keys.")
    if isinstance(data.get("steady"), dict):
        check_keys(data["steady"], fields(Steady), of="a plan", prefix="steady.")
    data["sweeps"] = [_sweep(item) for item in data.get("sweeps", ())]
    plan: Plan = _convert(data, Plan)
    _check(plan)
    return msgspec.structs.replace(plan, keys=_convert(_normal(keys | table, kind), kind))


def _sweep(raw: Any) -> Any:
    if not isinstance(raw, dict):
        return raw
    check_keys(raw, fields(PlanSweep), of="a plan", prefix="sweeps.")
    return _normal(raw, PlanSweep)


def _convert(data: Mapping[str, Any], kind: type[T]) -> T:
    return convert(data, kind, subject="plan", page="`elbowroom help plans`", words=rules(kind).words)


def _normal(raw: Mapping[str, Any], kind: type[msgspec.Struct]) -> dict[str, Any]:
    """Plain data with lists, bytes and seconds where people wrote one value, `64MiB` and `2min`."""
    data = {key: value for key, value in raw.items() if value is not None}
    lists, sizes, _ = rules(kind)
    for key in lists & data.keys():
        if not isinstance(data[key], list | tuple):
            data[key] = [data[key]]
    for key in sizes.keys() & data.keys():
        data[key] = _bytes(data[key], key, sizes[key])
    if data.get("budget") not in (None, 0):
        data["budget"] = parse_duration(data["budget"], "budget")
    if data.get("message_period") not in (None, 0):
        data["message_period"] = parse_period(data["message_period"], "message_period")
    return data


def _bytes(value: Any, key: str, or_none: bool) -> Any:
    if isinstance(value, list | tuple):
        return [_bytes(item, key, or_none) for item in value]
    return 0 if or_none and value in (0, "0") else parse_size(value, key)


_AXES = ("kernels", "n", "sizes", "cursors", "comm_threads")
_PLACES = ("comp_nodes", "comm_nodes", "comm_cores", "sequence")


def _check(plan: Plan) -> None:
    groups: tuple[Plan | PlanSweep, ...] = (plan, *plan.sweeps)
    for axes in groups:
        for key in _AXES if axes is not plan else (*_AXES, *_PLACES):
            if getattr(axes, key) == ():
                raise UsageError(
                    "an axis needs at least one value", field=key, value=[], hint="give one, or leave it out"
                )
        for kernel in axes.kernels or ():
            find(kernel)
    _check_starts(plan)
    known = ("counters", "frequency", "frequency_trace")
    for name in plan.observe:
        if name not in known:
            raise UsageError("no such observer", field="observe", value=name, hint=closest(name, known))


def _check_starts(plan: Plan) -> None:
    if plan.starts > plan.repetitions:
        raise UsageError(
            f"is more than there are repetitions ({plan.repetitions}), and each start measures one at least",
            field="starts",
            value=plan.starts,
            hint=f"--repeat {2 * plan.starts} gives each start two",
        )
    if plan.starts > 1 and plan.budget:
        raise UsageError(
            "cannot be combined with a budget: the repetitions of each start must be known before",
            field="starts",
            value=plan.starts,
            hint="leave the budget out",
        )
