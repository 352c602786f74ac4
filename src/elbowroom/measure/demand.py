"""Measuring the demand of a program: runs of it alone and beside known loads, in turns.

Each repetition has every load once, in random order, with a run alone before and after every third one; the
load's own rate alone is measured just before each run (models/demand.py evaluates).
"""

from __future__ import annotations

import contextlib
import os
import platform
import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from elbowroom.errors import MachineError
from elbowroom.launch.load import KnownLoad, LoadCount, known_load
from elbowroom.launch.processes import run_program
from elbowroom.machine.cores import load_split
from elbowroom.measure.timed_commands import last_number, printed
from elbowroom.models.demand import (
    AXES,
    DEMAND,
    FILE,
    LEVELS,
    REPORTERS,
    SHARES,
    Axis,
    Demand,
    LoadBesideLoad,
    LoadedRun,
    LoadFacts,
    LoadLevel,
    demand_of,
)
from elbowroom.progress import Progress
from elbowroom.signals import ends_as_interrupt

FIELD = "demand"
REPETITIONS = 5
BETWEEN = 3
"""Loads between two runs alone."""
SAMPLE = 0.1
"""Seconds of a measurement of a load alone, or beside another one."""
SAMPLES = 3
"""Measurements of each of these."""
LONGEST = 7200.0
"""Seconds after which the load ends in any case."""
SETTINGS = {
    "OMPI_MCA_hwloc_base_binding_policy": "none",
    "PRTE_MCA_hwloc_default_binding_policy": "none",
    "HYDRA_BINDING": "none",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "OMPI_MCA_mpi_yield_when_idle": "1",
}
"""Launchers that bind ranks would take other cores than the program's; ranks that share its cores must yield
them while they wait."""


class ProgramRun(NamedTuple):
    """Seconds of the program, B/s of the load meanwhile and alone, and the share of the time in which
    others had its cores.
    """

    seconds: float
    rate: float = 0.0
    rate_alone: float = 0.0
    waited: float = 0.0


class LoadBench(Protocol):
    """What runs programs and loads: this host, or a virtual machine of a test."""

    @property
    def facts(self) -> LoadFacts:
        """The program, its cores and those of the load."""

    def run(self, level: LoadLevel | None) -> ProgramRun:
        """The program beside a load, or alone."""

    def load_beside_load(self, axis: Axis, share: float) -> LoadBesideLoad:
        """An axis's reporter beside a load of that share on the program's cores."""


def turns(repetitions: int, seed: int) -> Iterator[tuple[int, LoadLevel | None]]:
    """(repetition, load) in the order in which they run; None: alone."""
    rng = random.Random(seed)
    yield 0, None
    for repetition in range(repetitions):
        levels = list(LEVELS)
        rng.shuffle(levels)
        for number, level in enumerate(levels, start=1):
            yield repetition, level
            if number % BETWEEN == 0 or number == len(levels):
                yield repetition, None


def loads_beside_loads(bench: LoadBench) -> list[LoadBesideLoad]:
    """What the load loses beside itself, at each share of each axis."""
    return [bench.load_beside_load(axis, share) for _ in range(SAMPLES) for axis in AXES for share in SHARES]


def measure_demand(
    bench: LoadBench,
    *,
    repetitions: int = REPETITIONS,
    seed: int = 1,
    budget: float | None = None,
    loads: Sequence[LoadBesideLoad] | None = None,
    tell: Callable[[str], object] | None = None,
) -> Demand:
    """Sensitivity and pressure of the bench's program.

    `loads`: what the load loses beside itself, where that was measured; `budget`: seconds after which no
    repetition begins, but two are always measured. MachineError where the program or the load fails.
    """
    known = loads_beside_loads(bench) if loads is None else loads
    order = list(turns(repetitions, seed))
    runs: list[LoadedRun] = []
    started = time.monotonic()
    with (
        ends_as_interrupt(),
        Progress(len(order), what="runs", doing="measuring the demand", tell=tell) as bar,
    ):
        for repetition, level in order:
            late = budget is not None and time.monotonic() - started > budget
            if late and repetition > 1 and runs[-1].axis is None:
                break
            one = bench.run(level)
            runs.append(
                LoadedRun(
                    repetition=repetition,
                    seconds=one.seconds,
                    axis=None if level is None else level.axis,
                    share=0.0 if level is None else level.share,
                    rate=one.rate,
                    rate_alone=one.rate_alone,
                    waited=one.waited,
                )
            )
            bar.step()
    return demand_of(bench.facts, runs, known, seed)


class HostBench:
    """Programs and loads on this host: a program on its cores, the load on others."""

    def __init__(
        self,
        words: Sequence[str],
        load: KnownLoad,
        other: KnownLoad,
        *,
        ranks: int = 1,
        metric: str | None = None,
        patience: float | None = None,
        env: dict[str, str] | None = None,
    ) -> None:
        """`load`: beside the program, `other`: on its cores. `metric`: a pattern that finds the seconds in
        the program's output, the wall time without it; `patience`: seconds that a run may take.
        """
        self._words, self._load, self._other, self._ranks = tuple(words), load, other, ranks
        self._metric, self._patience = metric, patience
        self._env = {**os.environ, **SETTINGS, **(env or {})}
        self._full = statistics.median(self._rate(load, None, load.largest) for _ in range(SAMPLES))

    @property
    def facts(self) -> LoadFacts:
        """The program, its cores and those of the load."""
        return LoadFacts(
            command=self._words,
            ranks=self._ranks,
            host=platform.node(),
            cores=self._other.cores,
            load_cores=self._load.cores,
            cache=self._load.cache,
            full_rate=self._full,
        )

    def run(self, level: LoadLevel | None) -> ProgramRun:
        """The program beside a load, or alone."""
        if level is None:
            self._load.set(rate=0)
            return ProgramRun(self._seconds())
        rate, footprint = self._setting(level)
        alone = self._rate(self._load, rate, footprint)
        before = self._load.count()
        seconds = self._seconds()
        after = self._load.count()
        self._load.set(rate=0)
        rate_beside = self._without_waiting(self._load, before, after)
        return ProgramRun(seconds, rate_beside, alone, after.waited(before, len(self._load.cores)))

    def load_beside_load(self, axis: Axis, share: float) -> LoadBesideLoad:
        """An axis's reporter beside a load of that share on the program's cores."""
        rate, footprint = self._setting(LoadLevel(axis, REPORTERS[axis]))
        alone = self._rate(self._load, rate, footprint)
        other_rate, other_footprint = self._setting(LoadLevel(axis, share))
        self._other.set(rate=other_rate, footprint=other_footprint)
        beside = self._rate(self._load, rate, footprint)
        for one in (self._load, self._other):
            one.set(rate=0)
        return LoadBesideLoad(axis=axis, share=share, rate=beside, rate_alone=alone)

    def _setting(self, level: LoadLevel) -> tuple[float | None, int]:
        """Rate and footprint of each core."""
        cores = len(self._load.cores)
        if level.axis == "memory":
            return (None if level.share == 1 else level.share * self._full / cores), self._load.largest
        cache = self._load.cache or self._load.largest // 4
        return None, max(int(level.share * cache / cores), 1 << 16)

    def _rate(self, load: KnownLoad, rate: float | None, footprint: int) -> float:
        """B/s of a load, which goes on."""
        before = load.set(rate=rate, footprint=footprint)
        time.sleep(SAMPLE)
        return self._without_waiting(load, before, load.count())

    @staticmethod
    def _without_waiting(load: KnownLoad, before: LoadCount, after: LoadCount) -> float:
        """B/s in the time in which the load had its cores; at least 1, of a load that never had them."""
        waited = after.waited(before, len(load.cores))
        return max(after.rate(before) / max(1 - waited, 0.1), 1.0)

    def _seconds(self) -> float:
        cores = ",".join(map(str, self._other.cores))
        finished = run_program(
            ("taskset", "-c", cores, *self._words), self._patience, env=self._env, field="command"
        )
        if self._metric is None:
            return finished.wall_s
        value = last_number(self._metric, finished.stdout)
        if value is None or not value > 0:
            raise MachineError(
                f"matches no seconds in the program's output: {printed(finished.stdout)}",
                field="metric",
                value=self._metric,
                hint="correct the expression, with the seconds in its group",
            )
        return value


@contextlib.contextmanager
def host_bench(
    words: Sequence[str],
    *,
    ranks: int = 1,
    load_cores: Sequence[int] | None = None,
    metric: str | None = None,
    patience: float | None = None,
    env: dict[str, str] | None = None,
) -> Iterator[HostBench]:
    """A bench of this host. `load_cores`: default: half of the cores that share a last-level cache.

    UsageError for cores that leave the program none, MachineError with a single core.
    """
    program, load = load_split(os.sched_getaffinity(0), load_cores)
    if not load:
        raise MachineError(
            "needs a core for the load, and this process may use one",
            field=FIELD,
            value=len(program),
            hint="ask for more cores",
        )
    with known_load(load, seconds=LONGEST) as beside, known_load(program, seconds=LONGEST) as other:
        yield HostBench(words, beside, other, ranks=ranks, metric=metric, patience=patience, env=env)


def write_demand(demand: Demand, folder: Path) -> Path:
    """Writes it into a profile; the file."""
    path = folder / FILE
    DEMAND.write(path, demand)
    return path
