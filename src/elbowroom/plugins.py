"""What installed packages add to elbowroom by entry points (docs/reference/extend.md)."""

from __future__ import annotations

import pkgutil
import sys
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import lru_cache
from importlib import import_module
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from elbowroom.errors import UsageError, closest

T = TypeVar("T")


class Plugins(NamedTuple):
    """The entry points of a group by name, and a sentence on each name that cannot be used."""

    by_name: dict[str, EntryPoint]
    problems: tuple[str, ...]


def declared(kind: str, built_in: Collection[str] = ()) -> Plugins:
    """The plug-ins of a kind (`experiments`, `plans` ...); nothing is imported. A name that is built in, or
    that several packages declare, is a problem, and no plug-in of it is used.
    """
    groups: dict[str, list[EntryPoint]] = defaultdict(list)
    for entry in _entries(f"elbowroom.{kind}", tuple(sys.path)):
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


@lru_cache(maxsize=16)
def _entries(group: str, _path: tuple[str, ...]) -> EntryPoints:
    """The entry points of a group of all packages on `sys.path`, which are read once."""
    return entry_points(group=group)


def package_of(entry: EntryPoint) -> str:
    """The package that declares an entry point."""
    return entry.dist.name if entry.dist is not None else entry.value


def load(entry: EntryPoint) -> Any:
    """What an entry point names; UsageError if it cannot be imported, for whatever reason."""
    try:
        return entry.load()
    except (Exception, SystemExit) as error:
        raise UsageError(
            f"cannot be imported ({type(error).__name__}: {error})",
            field=entry.group,
            value=entry.name,
            hint=_update(entry),
        ) from error


def refused(entry: EntryPoint, reason: str) -> UsageError:
    """The error for an entry point that names something else than its group is for."""
    return UsageError(reason, field=entry.group, value=entry.value, hint=_update(entry))


def _update(entry: EntryPoint) -> str:
    return f"update or uninstall {package_of(entry)}"


def instance_of(kind: type[T]) -> Callable[[EntryPoint], T]:
    """Loads entry points that name an instance of `kind` with the name that they declare."""

    def loaded(entry: EntryPoint) -> T:
        item = load(entry)
        if not isinstance(item, kind) or getattr(item, "name", None) != entry.name:
            raise refused(entry, f"is not of type {kind.__name__} with the name {entry.name!r}")
        return item

    return loaded


def file_of(entry: EntryPoint) -> Path:
    """The file `NAME.toml` of an entry point that names the package in which it lies."""
    place = getattr(load(entry), "__file__", None)
    if place is None:
        raise refused(entry, f"is not a package with a file {entry.name}.toml")
    return Path(place).with_name(f"{entry.name}.toml")


class Registry(Generic[T]):
    """All of a kind: what elbowroom has, and what installed packages declare.

    `kind` is the group of entry points, `noun` the kind in errors, `field` theirs (default: the noun).
    `built_in` gives the names of elbowroom's own, `own` one of them; `added` loads a plug-in, and raises
    UsageError. `hint` is what an unknown name is answered with, of the name and the known ones.
    """

    def __init__(
        self,
        kind: str,
        noun: str,
        *,
        built_in: Callable[[], Sequence[str]],
        own: Callable[[str], T],
        added: Callable[[EntryPoint], T],
        field: str = "",
        hint: Callable[[str, Sequence[str]], str] = closest,
    ) -> None:
        self.kind, self._noun, self._field = kind, noun, field or noun
        self._built_in, self._own, self._load_added, self._hint = built_in, own, added, hint

    @classmethod
    def of_modules(cls, kind: str, noun: str, item: type[T], package: str, **more: Any) -> Registry[T]:
        """A registry of instances of `item`. Each of elbowroom's own is in a module of its name of `package`,
        which declares it by the name of its type in capitals.
        """
        place = import_module(package).__path__
        return cls(
            kind,
            noun,
            built_in=lambda: tuple(module.name for module in pkgutil.iter_modules(place)),
            own=lambda name: getattr(import_module(f"{package}.{name}"), item.__name__.upper()),
            added=instance_of(item),
            **more,
        )

    def names(self) -> tuple[str, ...]:
        """All names, elbowroom's own first; imports no plug-in."""
        return (*self._built_in(), *self.declared().by_name)

    def declared(self) -> Plugins:
        """What installed packages declare."""
        return declared(self.kind, self._built_in())

    def get(self, name: str) -> T:
        """The one of that name. UsageError with the known ones if there is none, with the reason if a package
        declares it and it cannot be used.
        """
        if name in self._built_in():
            return self._own(name)
        added = self.declared()
        if name in added.by_name:
            return self._load_added(added.by_name[name])
        reasons = [problem for problem in added.problems if repr(name) in problem]
        hint = f"{' '.join(reasons)} Uninstall all but one." if reasons else self._hint(name, self.names())
        raise UsageError(f"no such {self._noun}", field=self._field, value=name, hint=hint)

    def all(self) -> tuple[T, ...]:
        """Each that can be used."""
        return self._usable(self.names())

    def added(self) -> tuple[T, ...]:
        """Each of an installed package that can be used."""
        return self._usable(self.declared().by_name)

    def _usable(self, names: Iterable[str]) -> tuple[T, ...]:
        results = map(self._attempt, names)
        return tuple(result for result in results if not isinstance(result, UsageError))

    def problems(self) -> tuple[str, ...]:
        """A sentence on each of an installed package that cannot be used."""
        added = self.declared()
        failures = [str(result) for result in map(self._attempt, added.by_name) if _failed(result)]
        return (*added.problems, *failures)

    def _attempt(self, name: str) -> T | UsageError:
        try:
            return self.get(name)
        except UsageError as error:
            return error


def _failed(result: object) -> bool:
    return isinstance(result, UsageError)
