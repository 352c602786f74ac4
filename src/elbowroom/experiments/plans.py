"""Plans by name and from files, with the keys of their experiments, changed by what the command line says."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from elbowroom import experiments, plugins
from elbowroom.documents import parse_toml
from elbowroom.errors import UsageError
from elbowroom.files import data_folder, read_text, wrong_kind
from elbowroom.plan import file
from elbowroom.plan.file import Plan, fields, rules
from elbowroom.quantities import parse_cores

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


class Overrides(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line changes; None and empty leave the plan alone. `settings` is `--set key=value`,
    `quick`: the plan's quick form, before all other changes.
    """

    kernels: tuple[str, ...] | None = None
    comp_cores: tuple[int, ...] | None = None
    comm_core: int | None = None
    comp_node: int | None = None
    comm_node: int | None = None
    sizes: tuple[int, ...] | None = None
    repeat: int | None = None
    starts: int | None = None
    budget: float | None = None
    settings: dict[str, str] = {}
    quick: bool = False


def folder() -> Path:
    """Where named plans are."""
    return data_folder("plans")


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


class ListedPlan(msgspec.Struct, frozen=True):
    """A named plan, and the question that it answers."""

    name: str
    experiment: str
    question: str


class PlanList(msgspec.Struct, frozen=True, kw_only=True):
    """What `plans --json` prints."""

    schema: str = "elbowroom/plans"
    version: int = 1
    plans: tuple[ListedPlan, ...]


def list_plans() -> PlanList:
    """The named plans that can be read. Of elbowroom's own, which its tests check, only these keys are read:
    no experiment is imported.
    """
    plans = []
    for name in _built_in():
        raw = parse_toml((folder() / f"{name}.toml").read_text(encoding="utf-8"), field="plan", where=name)
        plans.append(ListedPlan(raw.get("name", name), raw["experiment"], raw["question"]))
    plans += [ListedPlan(plan.name, plan.experiment, plan.question) for plan in PLANS.added()]
    return PlanList(plans=tuple(plans))


def load(name_or_path: str | Path) -> Plan:
    """The plan of that name, or of that TOML file; UsageError names the key, the value and the hint."""
    text = str(name_or_path)
    if text.endswith(".toml") or "/" in text:
        return _read(Path(text), text)
    return PLANS.get(text)


def _read(path: Path, text: str) -> Plan:
    if what := wrong_kind(path, "file"):
        raise UsageError(what, field="plan", value=text, hint=f"named plans: {', '.join(names())}")
    source = read_text(path, field="plan", hint="see `elbowroom help plans`")
    raw = parse_toml(source, field="plan", where=text)
    raw.setdefault("name", path.stem)
    _check_table(raw, text)
    return decode(raw)


def _check_table(raw: Mapping[str, Any], where: str) -> None:
    """UsageError for a key of the experiment that a plan file has outside the table `[keys]`."""
    name = raw.get("experiment")
    own = fields(experiments.get(name).keys) if isinstance(name, str) else frozenset()
    for key in sorted(own & raw.keys()):
        raise UsageError(
            f"is a key of the experiment {name}, in {where}",
            field=key,
            value=raw[key],
            hint="write it in the table [keys]",
        )


def apply(plan: Plan, overrides: Overrides) -> Plan:
    """The plan with the overrides in place of its axes, in every sweep. Points that become equal are measured
    once. With `repeat` each point is measured that many times, and only `budget` limits the time; with
    `starts` so often as the plan says.
    """
    raw = plan.plain()
    if overrides.quick:
        raw |= _quick(plan)
    changes = {
        "kernels": overrides.kernels,
        "comp_cores": overrides.comp_cores,
        "comm_cores": None if overrides.comm_core is None else (overrides.comm_core,),
        "comp_nodes": None if overrides.comp_node is None else (overrides.comp_node,),
        "comm_nodes": None if overrides.comm_node is None else (overrides.comm_node,),
        "sizes": overrides.sizes,
        "repetitions": overrides.repeat,
        "starts": overrides.starts,
    }
    for key, value in changes.items():
        if value is not None:
            _put(raw, key, value)
    if overrides.sizes is not None:
        raw["around"] = 0
    if overrides.repeat is not None or overrides.starts is not None:
        # Who names a number of repetitions, or divides them among starts, wants that many.
        raw["budget"], raw["precision"] = 0.0, 0.0
    kind: type[msgspec.Struct] = type(plan.keys)
    lists = rules(Plan).lists | rules(kind).lists
    for key, text in overrides.settings.items():
        _set(raw, key, text, lists)
    if overrides.budget is not None:
        raw["budget"] = overrides.budget
    return decode(raw)


def _quick(plan: Plan) -> dict[str, Any]:
    """What the quick form of a plan changes; UsageError where it has none."""
    if not plan.quick:
        have = ", ".join(other.name for other in plans() if other.quick)
        raise UsageError(
            f"is not a form of the plan {plan.name}",
            field="quick",
            hint=f"plans with one: {have}; for others: --budget 60s",
        )
    keys: dict[str, Any] = plan.quick.get("keys", {})
    return {key: value for key, value in plan.quick.items() if key != "keys"} | keys


def _put(raw: dict[str, Any], key: str, value: object) -> None:
    raw[key] = list(value) if isinstance(value, tuple) else value
    for sweep in raw["sweeps"]:
        sweep.pop(key, None)


def _set(raw: dict[str, Any], key: str, text: str, lists: frozenset[str]) -> None:
    table, _, name = key.rpartition(".")
    value: Any = _scalar(text)
    if key == "comp_cores":
        value = parse_cores(text, key)
    elif name in lists and table != "steady":
        value = tuple(_scalar(part.strip()) for part in text.split(",") if part.strip())
    if table == "keys":
        raw.pop(name, None)
    if table in ("keys", "steady"):
        raw.setdefault(table, {})[name] = value
    else:
        _put(raw, key, value)


def _scalar(text: str) -> object:
    """The TOML value that the text spells; else the text itself."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (tomllib.TOMLDecodeError, RecursionError):
        return text


def decode(raw: Mapping[str, Any]) -> Plan:
    """A plan from plain data, with the keys of its experiment; UsageError for those of another."""
    name = raw.get("experiment")
    if not isinstance(name, str):
        return file.decode(raw)
    kind = experiments.get(name).keys
    foreign = [key for key in raw.keys() - fields(Plan) - fields(kind) if _foreign(key, raw[key], name)]
    return file.decode({key: value for key, value in raw.items() if key not in foreign}, kind)


def _foreign(key: str, value: Any, experiment: str) -> bool:
    """Whether a key is of other experiments and has its default, as those of all experiments have in runs of
    release 0.1; UsageError for another value.
    """
    owners = [other for other in experiments.all() if key in fields(other.keys)]
    if owners and not any(file.is_default(key, value, owner.keys) for owner in owners):
        raise UsageError(
            f"is only valid for experiment {owners[0].name}, and this plan runs {experiment}",
            field=key,
            value=",".join(map(str, value)) if isinstance(value, list | tuple) else value,
            hint=f"remove it, or: elbowroom run {owners[0].name}",
        )
    return bool(owners)
