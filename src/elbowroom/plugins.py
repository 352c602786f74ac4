"""What installed packages add to elbowroom by entry points (docs/reference/extend.md)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from importlib.metadata import EntryPoint, entry_points
from typing import Any, NamedTuple

from elbowroom.errors import UsageError


class Plugins(NamedTuple):
    """The entry points of a group by name, and a sentence on each name that cannot be used."""

    by_name: dict[str, EntryPoint]
    problems: tuple[str, ...]


def declared(kind: str, built_in: Collection[str] = ()) -> Plugins:
    """The plug-ins of a kind (`experiments`, `plans` ...); nothing is imported. A name that is built in, or
    that several packages declare, is a problem, and no plug-in of it is used.
    """
    groups: dict[str, list[EntryPoint]] = defaultdict(list)
    for entry in entry_points(group=f"elbowroom.{kind}"):
        groups[entry.name].append(entry)
    unique, problems = {}, []
    for name, entries in sorted(groups.items()):
        packages = " and ".join(sorted(map(package_of, entries)))
        if name in built_in:
            problems.append(f"{packages} declares {name!r} in elbowroom.{kind}, which elbowroom itself has.")
        elif len(entries) > 1:
            problems.append(f"{packages} declare {name!r} in elbowroom.{kind}; none of them is used.")
        else:
            unique[name] = entries[0]
    return Plugins(unique, tuple(problems))


def package_of(entry: EntryPoint) -> str:
    """The package that declares an entry point."""
    return entry.dist.name if entry.dist is not None else entry.value


def load(entry: EntryPoint) -> Any:
    """What an entry point names; UsageError if it cannot be imported, for whatever reason."""
    try:
        return entry.load()
    except Exception as error:
        raise UsageError(
            f"cannot be imported ({type(error).__name__}: {error})",
            field=entry.group,
            value=entry.name,
            hint=f"update or uninstall {package_of(entry)}",
        ) from error
