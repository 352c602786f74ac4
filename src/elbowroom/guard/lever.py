"""What a guard acts on: a lever, the program that is guarded, and what a lever may use.

A lever is a file in `levers/` that declares an instance of `Lever` as LEVER, or an entry point of the group
`elbowroom.levers`. Its settings are words. Two of them every lever has: AS_IT_IS, under which it does not
act, and PLACEBO, under which it does everything that it does when it acts, and writes what it reads.

A lever inside the ranks (a preloaded library, a scheduling policy, our own libraries) reads the number of
its setting on the board (`elbow_guard_setting(guard, NUMBER)`: 0 as it is, 1 placebo, 2 the first of
`settings` ...); the first rank writes it exactly at the begin of a step. A lever outside of them (a control
group, another job) is switched by `set`, between two steps, and changes the system through the keeper alone.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import msgspec

from elbowroom.guard.board import Board
from elbowroom.guard.experiment import AS_IT_IS, PLACEBO
from elbowroom.guard.keeper import Keeper
from elbowroom.stats.interval import Interval

if TYPE_CHECKING:
    from elbowroom.guard.prediction import PredictedGains

NOT_IN_MODEL = "n/a: the model does not know what the lever changes"
"""Why nothing is predicted of most levers."""


class GuardedProgram(msgspec.Struct, frozen=True, kw_only=True):
    """The program before it starts: its `words`, the first program of it that is linked with each library
    that has an adapter (`libraries`: mpi, starpu, omp), the environment of the guard, and the levers that the
    user named (`named`; None: those that are there).
    """

    words: tuple[str, ...]
    libraries: Mapping[str, str]
    env: Mapping[str, str]
    named: tuple[str, ...] | None = None


class LeverAccess(msgspec.Struct, frozen=True, kw_only=True):
    """What a lever may use while the `program` runs: the `board` of this node, the `keeper` of what is
    changed outside of the program, the processes of the ranks on this node, and what a model of the machine
    predicts (None: there is none, for the reason `no_model`).
    """

    program: GuardedProgram
    board: Board
    keeper: Keeper
    processes: tuple[int, ...]
    gains: PredictedGains | None = None
    no_model: str = ""

    def cores(self) -> frozenset[int]:
        """On which the ranks that still run may run."""
        cores: set[int] = set()
        for process in self.processes:
            try:
                cores |= os.sched_getaffinity(process)
            except ProcessLookupError:
                continue
        return frozenset(cores)


class LeverReading(msgspec.Struct, frozen=True, kw_only=True):
    """What a `setting` requested (in a document: `asked`), what was `got`, whether that is close enough to
    use the lever, and the share of a step that it gains at most by the model, or why that is `n/a`.
    """

    setting: str
    requested: str = msgspec.field(name="asked")
    got: str
    works: bool
    predicted: Interval | str = ""


class Lever:
    """A lever of a guard. Errors: MachineError where it cannot act (any more); the guard then says so, leaves
    the program alone and goes on without it.
    """

    name: ClassVar[str]
    """As in `--levers NAME`."""
    number: ClassVar[int]
    """Its place among the settings of the board; each lever has its own (README.md lists them)."""
    inside: ClassVar[bool] = True
    """Whether it is switched by the board inside the ranks; else `set` does it."""
    held: float = 0.0
    """Of a lever outside: for how long it acted, s."""
    only_named: ClassVar[bool] = False
    """Whether it is used only where the user names it, because it may change the results of the program."""

    def missing(self, program: GuardedProgram) -> str | None:
        """Why it cannot be used with this program on this machine, as a sentence; None where it can."""
        raise NotImplementedError

    def settings(self, program: GuardedProgram) -> tuple[str, ...]:
        """The settings that are worth an experiment, at least one, without AS_IT_IS and PLACEBO."""
        raise NotImplementedError

    def environment(self, program: GuardedProgram) -> Mapping[str, str]:
        """What the program's processes need in their environment from the start; they act as without it until
        the first setting.
        """
        return {}

    def preloads(self, program: GuardedProgram) -> tuple[Path, ...]:
        """Libraries that are preloaded into the program's processes."""
        return ()

    def set(self, setting: str, access: LeverAccess) -> None:
        """Acts with this setting from now on; of a lever `inside`, by the board."""
        access.board.set(self.number, self.value(setting, access.program))

    def value(self, setting: str, program: GuardedProgram) -> int:
        """The number of a setting on the board. ValueError for one that the lever does not have."""
        return (AS_IT_IS, PLACEBO, *self.settings(program)).index(setting)

    def predicted(self, setting: str, access: LeverAccess) -> Interval | str:
        """The share of a step that a setting gains at most by the model of this machine (prediction.py), or
        why nothing is predicted.
        """
        if access.gains is None:
            return f"n/a: {access.no_model}"
        cores = self.memory_bound_cores(setting, access)
        if cores is None:
            return NOT_IN_MODEL
        return access.gains.gain(*cores, of_messages=not self.inside)

    def memory_bound_cores(self, setting: str, access: LeverAccess) -> tuple[int, int] | None:
        """How many cores have memory-bound work while messages move: without the lever at most, and under the
        setting at least. None where it changes something else.
        """
        return None

    def read(self, access: LeverAccess) -> str:
        """What is in effect now, measured and not remembered, in the words of `settings` where it is one of
        them.
        """
        raise NotImplementedError

    def calibrate(self, setting: str, access: LeverAccess) -> LeverReading:
        """Asked against got, before the setting is used: sets it, reads it, and leaves it as it was. A lever
        whose effect takes time or has a tolerance has a `calibrate` of its own.
        """
        try:
            self.set(setting, access)
            got = self.read(access)
        finally:
            self.set(AS_IT_IS, access)
        return LeverReading(setting=setting, requested=setting, got=got, works=got == setting)
