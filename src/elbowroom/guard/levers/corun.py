"""The lever `corun`: neighbours get less of the processors while large messages of the job move."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import NamedTuple

from elbowroom.errors import MachineError
from elbowroom.guard.experiment import AS_IT_IS, PLACEBO
from elbowroom.guard.lever import GuardedProgram, LeverAccess, LeverReading
from elbowroom.guard.neighbours import (
    NEIGHBOURS,
    NeighbourLever,
    named_neighbours,
    neighbour_cores,
    neighbour_threads,
    why_no_neighbour,
)

QUOTA = 0.2
"""The share of the node's cores that neighbours keep under `quota`."""
PERIOD = 10_000
"""Of a quota of cgroup v2, us: short, so that it holds within a burst of messages."""
WINDOW = 1.0
"""Seconds over which the processor time under a quota is measured."""
TOLERANCE = 0.1
"""Cores by which it may be above the quota: a period of 100 ms more may lie in the window, and two ticks."""
_NORMAL = (os.SCHED_OTHER, os.SCHED_BATCH, os.SCHED_IDLE)


class CpuLimit(NamedTuple):
    """The file that limits the processor time of a control group, and its contents under `quota` and now."""

    file: Path
    limited: str
    before: str


class Corun(NeighbourLever):
    """Neighbours yield: `idle`: they get the processor time that nobody else wants; `away`: they leave the
    cores of the ranks; `quota`: their control group gets QUOTA of the cores.
    """

    name = "corun"
    number = 4

    def __init__(self, root: Path = Path("/")) -> None:
        """Acts on nothing yet. `root`: where /proc and /sys of control groups are, for tests."""
        super().__init__()
        self._root = root
        self._before: dict[int, tuple[int, tuple[int, ...]]] = {}
        self._limit: CpuLimit | None = None

    def missing(self, program: GuardedProgram) -> str | None:
        """Where no neighbours are named, or they are another user's."""
        if (reason := why_no_neighbour(program)) is not None:
            return reason
        for word in named_neighbours(program):
            try:
                policy = os.sched_getscheduler(int(word))
                if policy not in _NORMAL:
                    return f"{NEIGHBOURS}: {word}: has a real-time policy, which is left alone"
                os.sched_setscheduler(int(word), policy, os.sched_param(0))  # whether that is allowed
            except OSError as error:
                return f"{NEIGHBOURS}: {word}: {error.strerror}"
        return None

    def settings(self, program: GuardedProgram) -> tuple[str, ...]:
        """All three; calibration drops those that do not hold here."""
        return ("idle", "away", "quota")

    def memory_bound_cores(self, setting: str, access: LeverAccess) -> tuple[int, int]:
        """Those of the neighbours; `idle` and `away` take all from them where the ranks need them."""
        cores = neighbour_cores(access.program)
        return cores, round(cores * QUOTA) if setting == "quota" else 0

    def read(self, access: LeverAccess) -> str:
        """What holds for all threads of the neighbours at this moment."""
        limit = self._limit
        if limit is not None and limit.file.read_text().strip() == limit.limited:
            return "quota"
        threads, cores = neighbour_threads(access.program), access.cores()
        if cores and not any(cores & os.sched_getaffinity(thread) for thread in threads):
            return "away"
        idle = all(os.sched_getscheduler(thread) == os.SCHED_IDLE for thread in threads)
        return "idle" if idle else AS_IT_IS

    def calibrate(self, setting: str, access: LeverAccess) -> LeverReading:
        """Acts once, whatever is in flight, looks at all threads, and says how long acting took."""
        begin = time.monotonic()
        try:
            self.act(setting, True, access)
            took = time.monotonic() - begin
            got = self.read(access)
            used = _cores_in_use(access) if setting == "quota" else 0.0
        except MachineError as error:
            return LeverReading(setting=setting, requested=setting, got=error.sentence(), works=False)
        finally:
            self.act(setting, False, access)
        works = got == setting or setting == PLACEBO
        got = f"{got} in {len(neighbour_threads(access.program))} threads after {took * 1e3:.1f} ms"
        if setting == "quota":
            most = QUOTA * (os.cpu_count() or 1)
            requested = f"quota: {most:.2f} cores"
            works = works and used <= most + TOLERANCE
            return LeverReading(
                setting=setting, requested=requested, got=f"{got}: {used:.2f} cores", works=works
            )
        return LeverReading(setting=setting, requested=setting, got=got, works=works)

    def act(self, setting: str, above: bool, access: LeverAccess) -> None:
        """Policies, cores or the limit of all neighbours."""
        if setting == "quota":
            self._limit_group(above, access)
        elif setting == "away":
            self._move_away(above, access)
        else:
            for thread in neighbour_threads(access.program):
                policy = self._as_before(thread)[0]
                access.keeper.schedule(thread, os.SCHED_IDLE if above and setting == "idle" else policy)

    def _limit_group(self, above: bool, access: LeverAccess) -> None:
        if above and self._limit is None:
            self._limit = self._find_limit(access.program)
        if self._limit is not None:
            access.keeper.write(self._limit.file, self._limit.limited if above else self._limit.before)

    def _move_away(self, above: bool, access: LeverAccess) -> None:
        free = tuple(sorted(os.sched_getaffinity(0) - access.cores()))
        if above and not free:
            raise MachineError("no core is left beside those of the ranks", field="corun", value="away")
        for thread in neighbour_threads(access.program):
            access.keeper.move(thread, free if above else self._as_before(thread)[1])

    def _as_before(self, thread: int) -> tuple[int, tuple[int, ...]]:
        """The policy and the cores of a thread when it was seen first."""
        return self._before.setdefault(
            thread, (os.sched_getscheduler(thread), tuple(sorted(os.sched_getaffinity(thread))))
        )

    def _find_limit(self, program: GuardedProgram) -> CpuLimit:
        """That of the neighbours' control group, which has no other processes. MachineError without one."""
        groups = {group for word in named_neighbours(program) for group in self._groups(word)}
        if len(groups) != 1:
            raise MachineError(
                "the neighbours are not in a control group of their own with a limit of processor time",
                field="corun",
                value="quota",
                hint="start them by `systemd-run --scope`, or as a job of the batch system",
            )
        (group,) = groups
        others = {word for file in group.rglob("cgroup.procs") for word in file.read_text().split()}
        if others := others - set(named_neighbours(program)):
            raise MachineError(
                f"the group also has process {min(others, key=int)}, which is not named in {NEIGHBOURS}",
                field="corun",
                value=str(group),
            )
        cores = QUOTA * (os.cpu_count() or 1)
        if (file := group / "cpu.max").exists():
            return CpuLimit(file, f"{round(cores * PERIOD)} {PERIOD}", file.read_text())
        file = group / "cpu.cfs_quota_us"
        period = int((group / "cpu.cfs_period_us").read_text())
        return CpuLimit(file, str(round(cores * period)), file.read_text())

    def _groups(self, process: str) -> set[Path]:
        """The groups of a process that can limit it, but the root, of cgroup v2 or v1."""
        try:
            lines = (self._root / "proc" / process / "cgroup").read_text().splitlines()
        except OSError:
            return set()
        mounts = self._root / "sys/fs/cgroup"
        places = []
        for line in lines:
            _, controllers, path = line.split(":", 2)
            if controllers in ("", "cpu", "cpu,cpuacct") and path != "/":
                places.append(mounts / controllers / path.lstrip("/"))
        return {
            place for place in places if (place / "cpu.max").exists() or (place / "cpu.cfs_quota_us").exists()
        }


def _cores_in_use(access: LeverAccess) -> float:
    """By all threads of the neighbours together, over WINDOW."""
    before, begin = _processor_seconds(access), time.monotonic()
    time.sleep(WINDOW)
    return (_processor_seconds(access) - before) / (time.monotonic() - begin)


def _processor_seconds(access: LeverAccess) -> float:
    ticks = 0
    for thread in neighbour_threads(access.program):
        try:
            words = Path(f"/proc/{thread}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += int(words[11]) + int(words[12])
    return ticks / os.sysconf("SC_CLK_TCK")


LEVER = Corun()
