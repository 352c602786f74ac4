"""The lever `resctrl`: neighbours get less memory bandwidth while large messages of the guarded job move.

It writes the MB line of the schemata of the neighbours' control group (Linux, Documentation/filesystems/
resctrl.rst: Intel MBA, AMD's L3 external bandwidth, Arm MPAM), which the operator has made. What a number
there means differs by processor: percent of one core's rate, MB/s of the group; limits that leak or that
other software takes back are known. So a setting is a share of the bandwidth that neighbours have, and the
number for it is found by the group's own bandwidth counters.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from elbowroom.errors import MachineError
from elbowroom.guard.experiment import AS_IT_IS, PLACEBO
from elbowroom.guard.lever import GuardedProgram, LeverAccess, LeverReading
from elbowroom.guard.neighbours import (
    NeighbourLever,
    neighbour_cores,
    neighbour_threads,
    why_no_neighbour,
)

SHARES = {"half": 0.5, "quarter": 0.25}
"""The bandwidth that neighbours keep under each setting, of what they have without."""
WINDOW, WINDOWS = 0.02, 5
"""Seconds over which bandwidth is measured, and how often for each number that is tried."""
HELD_WINDOWS = 50
"""Windows for which the number that is chosen must hold."""
TOLERANCE = 0.1
"""By so much may any window be above what was asked."""
LEAST = 0.2e9
"""B/s below which neighbours do not disturb, and cannot be measured."""
STEADY = 0.2
"""Neighbours whose bandwidth changes by more without a limit cannot be measured."""
PERCENT = 100
TRIED = 16
"""Numbers that are tried at most."""
_MEMORY = re.compile(r"^(\s*MB:)(.*)$", re.MULTILINE)


class ControlGroup(NamedTuple):
    """The neighbours' folder of resctrl, and its schemata when it was found."""

    folder: Path
    before: str

    def line(self, number: int) -> str:
        """The schemata with this number for all memory domains."""
        return _MEMORY.sub(lambda line: line[1] + re.sub(r"=\s*\d+", f"={number}", line[2]), self.before)

    def numbers(self) -> tuple[int, ...]:
        """Those in effect, by domain."""
        line = _MEMORY.search((self.folder / "schemata").read_text())
        return () if line is None else tuple(int(one) for one in re.findall(r"=\s*(\d+)", line[2]))

    def bytes(self) -> int:
        """That its processes moved from and to memory. MachineError where that is not counted."""
        values = [file.read_text().strip() for file in self.folder.glob("mon_data/*/mbm_total_bytes")]
        if not values or not all(value.isdecimal() for value in values):
            raise MachineError(
                "does not count memory bandwidth, so what a limit does cannot be measured",
                field="resctrl",
                value=str(self.folder),
            )
        return sum(map(int, values))


class Resctrl(NeighbourLever):
    """Neighbours keep half, or a quarter, of their memory bandwidth."""

    name = "resctrl"
    number = 5

    def __init__(
        self,
        mount: Path = Path("/sys/fs/resctrl"),
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Acts on nothing yet. `mount`, `sleep` and `clock`: others in tests."""
        super().__init__()
        self._mount, self._sleep, self._clock = mount, sleep, clock
        self._group: ControlGroup | None = None
        self._chosen: dict[str, int] = {}

    def missing(self, program: GuardedProgram) -> str | None:
        """Without resctrl, a limit and a counter of memory bandwidth, or a group of the neighbours."""
        if (reason := why_no_neighbour(program)) is not None:
            return reason
        if not (self._mount / "schemata").exists():
            return f"{self._mount}: resctrl is not mounted"
        if not (self._mount / "info/MB").is_dir():
            return "this processor cannot limit memory bandwidth"
        try:
            group = self._find_group(program)
            group.bytes()
        except (MachineError, OSError) as error:
            return error.sentence() if isinstance(error, MachineError) else str(error)
        if not os.access(group.folder / "schemata", os.W_OK):
            return f"{group.folder}/schemata: may not be written; ask the operator for this group"
        return None

    def settings(self, program: GuardedProgram) -> tuple[str, ...]:
        """By how much."""
        return tuple(SHARES)

    def memory_bound_cores(self, setting: str, access: LeverAccess) -> tuple[int, int]:
        """Those of the neighbours; less bandwidth is as that of so many cores less."""
        cores = neighbour_cores(access.program)
        return cores, round(cores * SHARES.get(setting, 1.0))

    def act(self, setting: str, above: bool, access: LeverAccess) -> None:
        """Writes the schemata. MachineError where other software took back what was written last."""
        group = self._known_group(access.program)
        file = group.folder / "schemata"
        if not above:
            self._check_held(setting, group)
        number = self._chosen.get(setting)
        text = group.before if number is None or not above else group.line(number)
        access.keeper.write(file, text)

    def read(self, access: LeverAccess) -> str:
        """By the numbers of the group."""
        numbers = set(self._known_group(access.program).numbers())
        return next((name for name, one in self._chosen.items() if numbers == {one}), AS_IT_IS)

    def calibrate(self, setting: str, access: LeverAccess) -> LeverReading:
        """Tries numbers from the largest on, until what the neighbours get is what was asked."""
        if setting == PLACEBO:
            return LeverReading(setting=setting, requested=setting, got=setting, works=True)
        group = self._known_group(access.program)
        free = self._rates(group, WINDOWS)
        wanted = SHARES[setting] * fmean(free)
        requested = f"{wanted / 1e9:.2f} GB/s"
        if fmean(free) < LEAST:
            got = f"{fmean(free) / 1e9:.2f} GB/s without a limit: the neighbours use no memory bandwidth now"
            return LeverReading(setting=setting, requested=requested, got=got, works=False)
        try:
            number, got = self._find_number(wanted, group, access)
        finally:
            access.keeper.write(group.folder / "schemata", group.before)
        after = fmean(self._rates(group, WINDOWS))
        if number is not None and abs(after / fmean(free) - 1) > STEADY:
            number, got = None, "useless: the neighbours' bandwidth changes by itself"
        if number is not None:
            self._chosen[setting] = number
        return LeverReading(setting=setting, requested=requested, got=got, works=number is not None)

    def _find_number(self, wanted: float, group: ControlGroup, access: LeverAccess) -> tuple[int | None, str]:
        """The largest number that holds, and what was got by it; None and why where none does."""
        least = float("inf")
        for number in self._numbers(wanted, group):
            access.keeper.write(group.folder / "schemata", group.line(number))
            rates = self._rates(group, WINDOWS)
            least = min(least, max(rates))
            if max(rates) > (1 + TOLERANCE) * wanted:
                continue
            rates = self._rates(group, HELD_WINDOWS)
            if set(group.numbers()) != {number}:
                return None, f"useless: MB={number} was taken back within {WINDOW * HELD_WINDOWS:g} s"
            if max(rates) <= (1 + TOLERANCE) * wanted:
                shown = f"{fmean(rates) / 1e9:.2f} GB/s, at most {max(rates) / 1e9:.2f}"
                return number, f"{shown}, by MB={number}"
            least = min(least, max(rates))
        return None, f"useless: not below {least / 1e9:.2f} GB/s"

    def _numbers(self, wanted: float, group: ControlGroup) -> list[int]:
        """That are worth a trial, from the largest on: percent, or MB/s where resctrl is mounted so."""
        least, step = (
            int((self._mount / "info/MB" / name).read_text()) for name in ("min_bandwidth", "bandwidth_gran")
        )
        if max(group.numbers()) <= PERCENT:
            numbers = list(range(PERCENT - step, least - 1, -max(step, 1)))
        else:
            most = wanted / 1e6
            numbers = [round(most * (1 - at / TRIED)) for at in range(TRIED)]
            numbers = [max(number - number % max(step, 1), least) for number in numbers]
        stride = -(-len(numbers) // TRIED)
        return sorted({*numbers[::stride], *numbers[-1:]}, reverse=True)

    def _rates(self, group: ControlGroup, windows: int) -> list[float]:
        rates = []
        for _ in range(windows):
            before, begin = group.bytes(), self._clock()
            self._sleep(WINDOW)
            rates.append((group.bytes() - before) / (self._clock() - begin))
        return rates

    def _check_held(self, setting: str, group: ControlGroup) -> None:
        number = self._chosen.get(setting)
        if number is not None and set(group.numbers()) != {number}:
            raise MachineError(
                f"MB={number} was taken back by other software", field="resctrl", value=str(group.folder)
            )

    def _known_group(self, program: GuardedProgram) -> ControlGroup:
        self._group = self._group or self._find_group(program)
        return self._group

    def _find_group(self, program: GuardedProgram) -> ControlGroup:
        """That of the neighbours, which has no other tasks. MachineError without one."""
        wanted = {str(thread) for thread in neighbour_threads(program)}
        for file in self._mount.glob("*/tasks"):
            tasks = set(file.read_text().split())
            if not tasks & wanted:
                continue
            if others := (tasks ^ wanted):
                raise MachineError(
                    f"task {min(others, key=int)} is not in the group with the others, or is no neighbour's",
                    field="resctrl",
                    value=str(file.parent),
                )
            return ControlGroup(file.parent, (file.parent / "schemata").read_text())
        raise MachineError(
            "the neighbours have no control group",
            field="resctrl",
            value=str(self._mount),
            hint="mkdir a folder there, and write the numbers of their threads to its file tasks",
        )


LEVER = Resctrl()
