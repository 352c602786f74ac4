"""Applications that are measured beside each other, as TOML (docs/guide/colocate.md), and in which order."""

from __future__ import annotations

import math
import random
import re
import shlex
import string
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from elbowroom.documents import TomlFormat
from elbowroom.errors import MachineError, UsageError
from elbowroom.quantities import parse_bandwidth

Mode = Literal["exclusive", "half", "shared"]

BRACES = ("cores", "nodes", "ranks", "job")
"""What a command may name: cores that it uses of a node, nodes, both multiplied, and which of two jobs there
it is (0, 1).
"""

MOST_EMULATED_NODES = 64

PAGE = "`elbowroom help colocate`"


class NicTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Emulated nodes on this machine, each with a NIC (docs/reference/nic.md): `bandwidth` of each direction,
    such as `50MB/s`.
    """

    bandwidth: str

    def __post_init__(self) -> None:
        if self.rate < 1000:
            raise UsageError(
                "is below 1 kB/s", field="nic.bandwidth", value=self.bandwidth, hint="give 50MB/s"
            )

    @property
    def rate(self) -> float:
        """Bandwidth in B/s; UsageError where it is none."""
        return parse_bandwidth(self.bandwidth, "nic.bandwidth")


class Application(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`command`, with names of BRACES in braces; `number`: a regular expression whose group has the seconds
    in its output (None: the file's; without one the wall time counts); `profile`: a folder of it alone, which
    the measurement is compared with.
    """

    command: str
    number: str | None = None
    profile: str | None = None


class Applications(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All `apps` run on `nodes` nodes with `cores` cores each, alone. Half: half of the cores of twice the
    nodes; shared: two applications so on the same nodes. `nic`: the nodes are emulated.
    """

    apps: dict[str, Application]
    cores: Annotated[int, Meta(ge=2)]
    nodes: Annotated[int, Meta(ge=1)] = 1
    number: str | None = None
    env: dict[str, str] = {}
    nic: NicTable | None = None

    def __post_init__(self) -> None:
        if not self.apps:
            raise UsageError("has no application", field="apps", hint="add a table [apps.NAME]")
        if self.cores % 2:
            raise UsageError(
                "cannot be halved", field="cores", value=self.cores, hint="give an even number of cores"
            )
        if self.nic is not None and 2 * self.nodes > MOST_EMULATED_NODES:
            raise UsageError(
                f"needs {2 * self.nodes} emulated nodes, and there are at most {MOST_EMULATED_NODES}",
                field="nodes",
                value=self.nodes,
                hint=f"give at most {MOST_EMULATED_NODES // 2}",
            )
        for name, app in self.apps.items():
            _check_command(name, app.command)
            for number in (app.number, self.number):
                _check_number(name, number)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.apps)

    def place(self, mode: Mode) -> tuple[int, int]:
        """Cores of each node that an application has, and its nodes."""
        return (self.cores, self.nodes) if mode == "exclusive" else (self.cores // 2, 2 * self.nodes)

    def words(self, name: str, mode: Mode, job: int = 0) -> list[str]:
        """The command of an application; in the shared mode as one of two jobs."""
        cores, nodes = self.place(mode)
        values = {"cores": cores, "nodes": nodes, "ranks": cores * nodes, "job": job}
        return [word.format(**values) for word in shlex.split(self.apps[name].command)]

    def seconds(self, name: str, printed: str, wall_s: float) -> float:
        """What a run took: the last number that the expression matches, or the wall time. MachineError where
        the output has no such number.
        """
        pattern = self.apps[name].number or self.number
        if pattern is None:
            return wall_s
        matches = re.findall(pattern, printed)
        value = float(matches[-1]) if matches else math.nan
        if not (value > 0 and math.isfinite(value)):
            raise MachineError(
                f"matches no time in the output of {name}: {printed.strip()[-200:] or 'nothing'}",
                field="number",
                value=pattern,
                hint="fix the expression, with the seconds in its group",
            )
        return value


def _check_command(name: str, command: str) -> None:
    field = f"apps.{name}.command"
    try:
        named = {brace for _, brace, _, _ in string.Formatter().parse(command) if brace is not None}
        words = shlex.split(command)
    except ValueError as error:
        raise UsageError(
            f"cannot be read ({error})", field=field, value=command, hint="write {{ for {"
        ) from error
    if not words:
        raise UsageError("is empty", field=field, value=command, hint="name the program")
    for brace in sorted(named - set(BRACES)):
        raise UsageError(f"names {{{brace}}}", field=field, value=command, hint=f"known: {', '.join(BRACES)}")


def _check_number(name: str, number: str | None) -> None:
    if number is None:
        return
    field = f"apps.{name}.number"
    try:
        groups = re.compile(number).groups
    except re.error as error:
        raise UsageError(
            f"is not a regular expression ({error})", field=field, value=number, hint="correct it"
        ) from error
    if groups != 1:
        raise UsageError(
            f"has {groups} groups", field=field, value=number, hint="put the seconds into one group"
        )


APPLICATIONS = TomlFormat(kind=Applications, field="apps", of="a file of applications", page=PAGE)


def decode(text: str, where: str) -> Applications:
    """Applications from TOML; UsageError that names field, value and hint."""
    return APPLICATIONS.decode(text, where)


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """One measurement: an application alone, or two that share (`second`)."""

    repetition: int
    mode: Mode
    first: str
    second: str | None = None

    @property
    def key(self) -> tuple[int, str, str, str]:
        """What a journal knows it by."""
        return self.repetition, self.mode, self.first, self.second or ""


def turns(apps: Applications, repetitions: int, seed: int) -> list[Turn]:
    """All applications alone in both ways and all pairs, also with themselves; shuffled by repetition."""
    rng = random.Random(seed)
    names = apps.names
    result = []
    for repetition in range(repetitions):
        whole = [Turn(repetition=repetition, mode="exclusive", first=name) for name in names]
        whole += [Turn(repetition=repetition, mode="half", first=name) for name in names]
        whole += [
            Turn(repetition=repetition, mode="shared", first=first, second=second)
            for index, first in enumerate(names)
            for second in names[index:]
        ]
        rng.shuffle(whole)
        result += whole
    return result
