"""Plans: read from TOML, checked key by key, changed by what the command line says."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import Meta

from elbowroom import plugins
from elbowroom.documents import check_keys, convert, parse_toml
from elbowroom.errors import UsageError, closest
from elbowroom.files import read_text
from elbowroom.plan.durations import LONGEST, MOST_REPETITIONS, parse_duration
from elbowroom.plan.kernels import find
from elbowroom.plan.point import Access, Build, Data, Metric, Pattern, Phase, Reuse, Who
from elbowroom.plan.sizes import parse_cores, parse_size

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Positive = Annotated[int, Meta(ge=1)]
Natural = Annotated[int, Meta(ge=0)]
Count = Positive | Literal["every", "few", "half", "all"]
NodeChoice = Natural | Literal["near", "far", "every"]
CommNodeChoice = Natural | Literal["near", "far", "every", "same"]
CommCoreChoice = Natural | Literal["last", "near", "far"]


class Steady(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Steady state (method.md, rule 2): samples of the moving window, its coefficient of variation, seconds
    to wait.
    """

    window: Annotated[int, Meta(ge=2)] = 7
    cov: Annotated[float, Meta(gt=0, lt=1)] = 0.05
    limit: Annotated[float, Meta(gt=0)] = 1.0


class Sweep(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of a plan with axes of its own; what is None is the plan's."""

    kernels: tuple[str, ...] | None = None
    n: tuple[Count, ...] | None = None
    sizes: tuple[Positive, ...] | None = None
    cursors: tuple[Positive, ...] | None = None
    comm_threads: tuple[Positive, ...] | None = None


class Plan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to measure: an experiment and its axes. Sizes are bytes, `window` seconds, frequencies kHz.

    `n`: numbers of computing cores, or `every`, `few` (one seventh, the paper's 5 of 35), `half`, `all`.
    `budget`: seconds from the command to the report on a real machine, 0 without limit (docs/guide/plans.md);
    `precision`: half width of the intervals of ln(kept) at which a run with a budget stops early, 0 never.
    Nodes: numbers, or `near` (the NIC), `far`, `every`; `comm_nodes` may be `same` as the computations'.
    `comm_cores`: cores of the communication thread, or `last`, `near`, `far`. `around`: adds each power of
    two from 64 B minus and plus that many bytes (method.md, rule 13). `pool`: where computing cores come from
    when `comp_cores` does not name them. Of plans of an application: `cells` of its mesh (0: as many as the
    experiment chooses), `nodes` of a simulated cluster, `steps` timed in a repetition after `warmup` others,
    `partitioner` of the mesh, and `model`, a file whose loss ratios are used in place of measured ones.

    Of extraneous accesses (`ema`): `who` touches memory, how (`access`), how much (`accesses`: the least and
    the most, every `access_step` bytes, measured in windows of `window_sizes` sizes), `data` of the messages,
    `barrier`, and `exchanges` timed for each size. Of `polling`: `backoffs` of StarPU's workers (0: paused).
    Of `kernels`: `tasks`, `builds`, `order` and `block` of the matrices (0: chosen), `iterations` at most.
    `keys`: a table of what only the plan's experiment understands, which it decodes itself.
    """

    name: str
    experiment: str
    question: str = ""
    kernels: tuple[str, ...] = ("triad",)
    n: tuple[Count, ...] = ("all",)
    sizes: tuple[Positive, ...] = (4, 64_000_000)
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
    processes: tuple[Literal["node", "socket"], ...] = ("node",)
    reuse: Reuse = "same"
    sequence: tuple[Phase, ...] = ("A", "B", "AB", "AB", "B", "A")
    observe: tuple[str, ...] = ()
    core_khz: tuple[Positive, ...] = ()
    uncore_khz: tuple[Positive, ...] = ()
    working_set: Annotated[int, Meta(ge=0)] = 0
    repetitions: Annotated[int, Meta(ge=1, le=MOST_REPETITIONS)] = 10
    budget: Annotated[float, Meta(ge=0, le=LONGEST)] = 0.0
    precision: Annotated[float, Meta(ge=0, lt=1)] = 0.0
    window: Annotated[float, Meta(gt=0, le=600)] = 0.12
    steady: Steady = Steady()
    seed: Natural = 1
    control: bool = True
    scheduling: bool = False
    hosts: Positive = 1
    cells: Natural = 0
    nodes: tuple[Positive, ...] = ()
    steps: Positive = 20
    warmup: Natural = 3
    partitioner: Literal["metis", "slabs"] = "metis"
    model: str = ""
    who: tuple[Who, ...] = ("sender", "receiver", "both", "bystanders")
    access: tuple[Access, ...] = ("write",)
    accesses: tuple[Natural, Natural] = (0, 4_000_000)
    access_step: Positive = 400
    window_sizes: Positive = 100
    data: tuple[Data, ...] = ("same",)
    barrier: tuple[bool, ...] = (True,)
    exchanges: Positive = 16
    backoffs: tuple[Natural, ...] = ()
    tasks: tuple[Literal["cg", "cg-sparse", "gemm"], ...] = ("cg", "cg-sparse", "gemm")
    builds: tuple[Build, ...] = ("openmp", "starpu")
    order: Natural = 0
    block: Natural = 0
    iterations: Natural = 0
    sweeps: tuple[Sweep, ...] = ()
    keys: dict[str, Any] = {}


class Overrides(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line changes; None and empty leave the plan alone. `settings` is `--set key=value`."""

    kernels: tuple[str, ...] | None = None
    comp_cores: tuple[int, ...] | None = None
    comm_core: int | None = None
    comp_node: int | None = None
    comm_node: int | None = None
    sizes: tuple[int, ...] | None = None
    repeat: int | None = None
    budget: float | None = None
    settings: dict[str, str] = {}


def folder() -> Path:
    """Where named plans are: inside the installed package, or beside the sources of a checkout."""
    package = Path(__file__).resolve().parents[1]
    installed = package / "plans"
    return installed if installed.is_dir() else package.parents[1] / "plans"


def _built_in() -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in folder().glob("*.toml")))


def _own(name: str) -> Plan:
    return _read(folder() / f"{name}.toml", name)


def _added(entry: EntryPoint) -> Plan:
    return _read(plugins.file_of(entry), entry.name)


PLANS = plugins.Registry("plans", "plan", built_in=_built_in, own=_own, added=_added)
"""The named plans: those of elbowroom and of installed packages."""


def names() -> tuple[str, ...]:
    """The named plans: those of elbowroom, then those of installed packages."""
    return PLANS.names()


def plans() -> list[Plan]:
    """The named plans that can be read."""
    return list(PLANS.all())


def load(name_or_path: str | Path) -> Plan:
    """The plan of that name, or of that TOML file; UsageError names the key, the value and the hint."""
    text = str(name_or_path)
    if text.endswith(".toml") or "/" in text:
        return _read(Path(text), text)
    return PLANS.get(text)


def _read(path: Path, text: str) -> Plan:
    if not path.is_file():
        raise UsageError("no such file", field="plan", value=text, hint=f"named plans: {', '.join(names())}")
    source = read_text(path, field="plan", hint="see `elbowroom help plans`")
    raw = parse_toml(source, field="plan", where=text)
    raw.setdefault("name", path.stem)
    return decode(raw)


def apply(plan: Plan, overrides: Overrides) -> Plan:
    """The plan with the overrides in place of its axes, in every sweep. Points that become equal are measured
    once. With `repeat` each point is measured that many times, and only `budget` limits the time.
    """
    raw = msgspec.to_builtins(plan)
    changes = {
        "kernels": overrides.kernels,
        "comp_cores": overrides.comp_cores,
        "comm_cores": None if overrides.comm_core is None else (overrides.comm_core,),
        "comp_nodes": None if overrides.comp_node is None else (overrides.comp_node,),
        "comm_nodes": None if overrides.comm_node is None else (overrides.comm_node,),
        "sizes": overrides.sizes,
        "repetitions": overrides.repeat,
    }
    for key, value in changes.items():
        if value is not None:
            _put(raw, key, value)
    if overrides.sizes is not None:
        raw["around"] = 0
    if overrides.repeat is not None:
        # Who names a number of repetitions wants that many.
        raw["budget"], raw["precision"] = 0.0, 0.0
    for key, text in overrides.settings.items():
        _set(raw, key, text)
    if overrides.budget is not None:
        raw["budget"] = overrides.budget
    return decode(raw)


def _put(raw: dict[str, Any], key: str, value: object) -> None:
    raw[key] = list(value) if isinstance(value, tuple) else value
    for sweep in raw["sweeps"]:
        sweep.pop(key, None)


def _set(raw: dict[str, Any], key: str, text: str) -> None:
    table, _, name = key.partition(".")
    if name and table in ("steady", "keys"):
        raw[table][name] = _scalar(text)
    elif key in ("comp_cores",):
        _put(raw, key, parse_cores(text, key))
    elif key in _LISTS:
        _put(raw, key, tuple(_scalar(part.strip()) for part in text.split(",") if part.strip()))
    else:
        _put(raw, key, _scalar(text))


def _scalar(text: str) -> object:
    """The TOML value that the text spells; else the text itself."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (tomllib.TOMLDecodeError, RecursionError):
        return text


_KEYS = {field.name for field in msgspec.structs.fields(Plan)}
_DEFAULTS = {field.name: field.default for field in msgspec.structs.fields(Plan)}
_SWEEP_KEYS = {field.name for field in msgspec.structs.fields(Sweep)}
_OWN_KEYS: dict[str, tuple[str, ...]] = {
    "diffusion": ("cells", "nodes", "steps", "warmup", "partitioner", "model"),
    "ema": ("who", "access", "accesses", "access_step", "window_sizes", "data", "barrier", "exchanges"),
    "polling": ("backoffs",),
    "kernels": ("tasks", "builds", "order", "block", "iterations"),
}
"""Keys of one experiment only; elsewhere they are refused."""
_STEADY_KEYS = {field.name for field in msgspec.structs.fields(Steady)}
_LISTS = {
    field.name
    for field in msgspec.structs.fields(Plan)
    if isinstance(field.default, tuple) and field.name != "sweeps"
}


_WORDS = {
    "n": "whole numbers from 1, every, few, half, all",
    "comp_nodes": "node numbers, near, far, every",
    "comm_nodes": "node numbers, near, far, every, same",
    "comm_cores": "core numbers, last, near, far",
    "metric": "auto, latency, bandwidth",
    "pattern": "pingpong, receive, bidirectional, ring",
    "processes": "node, socket",
    "pool": "machine, socket",
    "reuse": "same, rotate, off-cache",
    "sequence": "A, B, AB, S",
    "partitioner": "metis, slabs",
    "who": "none, sender, receiver, both, bystanders",
    "access": "read, write",
    "data": "same, different",
    "tasks": "cg, cg-sparse, gemm",
    "builds": "openmp, starpu",
}
"""What fields accept, as the documentation says."""


def decode(raw: Mapping[str, Any]) -> Plan:
    """A plan from plain data. A scalar stands for a list of one; sizes may be `64MiB`."""
    check_keys(raw, _KEYS, of="a plan")
    data = _normal(raw)
    if isinstance(data.get("steady"), dict):
        check_keys(data["steady"], _STEADY_KEYS, of="a plan", prefix="steady.")
    sweeps = data.get("sweeps", [])
    if isinstance(sweeps, dict):
        sweeps = [sweeps]
    if isinstance(sweeps, list):
        for sweep in sweeps:
            if isinstance(sweep, dict):
                check_keys(sweep, _SWEEP_KEYS, of="a plan", prefix="sweeps.")
        data["sweeps"] = [_normal(sweep) if isinstance(sweep, dict) else sweep for sweep in sweeps]
    plan = convert(data, Plan, subject="plan", page="`elbowroom help plans`", words=_WORDS)
    _check(plan)
    return plan


def _normal(raw: Mapping[str, Any]) -> dict[str, Any]:
    data = {key: value for key, value in raw.items() if value is not None}
    for key in _LISTS & data.keys():
        if not isinstance(data[key], list | tuple):
            data[key] = [data[key]]
    if "sizes" in data:
        data["sizes"] = [parse_size(size) for size in data["sizes"]]
    if data.get("budget") not in (None, 0):
        data["budget"] = parse_duration(data["budget"], "budget")
    if isinstance(data.get("working_set"), str):
        data["working_set"] = parse_size(data["working_set"], "working_set")
    if "accesses" in data:
        ends = [0 if end in (0, "0") else parse_size(end, "accesses") for end in data["accesses"]]
        data["accesses"] = [0, *ends] if len(ends) == 1 else ends
    if isinstance(data.get("access_step"), str):
        data["access_step"] = parse_size(data["access_step"], "access_step")
    return data


def _check(plan: Plan) -> None:
    for owner, keys in _OWN_KEYS.items():
        for key in keys if plan.experiment != owner else ():
            value = getattr(plan, key)
            if value != _DEFAULTS[key]:
                raise UsageError(
                    f"is only valid for experiment {owner}, and this plan runs {plan.experiment}",
                    field=key,
                    value=",".join(map(str, value)) if isinstance(value, tuple) else value,
                    hint=f"remove it, or: elbowroom run {owner}",
                )
    groups: tuple[Plan | Sweep, ...] = (plan, *plan.sweeps)
    for axes in groups:
        for key in ("kernels", "n", "sizes", "cursors", "comm_threads"):
            if getattr(axes, key) == ():
                raise UsageError(
                    "an axis needs at least one value", field=key, value=[], hint="give one, or leave it out"
                )
        for kernel in axes.kernels or ():
            find(kernel)
    for key in ("comp_nodes", "comm_nodes", "comm_cores", "processes", "sequence"):
        if getattr(plan, key) == ():
            raise UsageError(
                "an axis needs at least one value", field=key, value=[], hint="give one, or leave it out"
            )
    known = ("counters", "frequency", "frequency_trace")
    for name in plan.observe:
        if name not in known:
            raise UsageError("no such observer", field="observe", value=name, hint=closest(name, known))
