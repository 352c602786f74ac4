"""`elbowroom colocate demand`: what a program loses beside a known load, and what load it is itself."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from elbowroom.cli.answer import Answer, command_line
from elbowroom.cli.console import chatter, print_wrapped
from elbowroom.cli.options import REPEAT
from elbowroom.cli.tables import new_table, print_table
from elbowroom.errors import UsageError
from elbowroom.launch.build import load_program
from elbowroom.launch.planned_starts import PlannedStart
from elbowroom.machine.cores import load_split
from elbowroom.quantities import format_size, parse_cores, percent_span, plural, short_time
from elbowroom.verbs.declaration import (
    Options,
    Verb,
    argument,
    command_argument,
    dry_run_option,
    function_of,
    included,
    option,
)
from elbowroom.verbs.run_options import timeout_option

if TYPE_CHECKING:
    from elbowroom.models.demand import Demand, Pressure
    from elbowroom.profile.profile import Profile

RUNS_PER_REPETITION = 8
"""Six loads, and two runs alone."""


def parse_metric(text: str, field: str) -> str | None:
    """A pattern with the seconds in its group; None for `wall`. UsageError for what is no such pattern."""
    if text == "wall":
        return None
    try:
        groups = re.compile(text).groups if text.strip() else 0
    except (re.error, RecursionError, OverflowError) as error:
        raise UsageError(
            f"is not a regular expression ({error})", field=field, value=text, hint="correct it"
        ) from error
    if groups != 1:
        raise UsageError(
            f"has {plural(groups, 'group')}, not one",
            field=field,
            value=text,
            hint="put parentheses around the number only: 'step (\\S+) s'",
        )
    return text


class DemandSettings(Options):
    """How the demand of a program is measured. `load_cores`: default: half of the cores of each cache."""

    load_cores: tuple[int, ...] | None = option(
        "Cores of the load; default: half of those that share a cache. The program has the others.",
        "LIST",
        parse=parse_cores,
    )
    metric: str | None = option(
        "What a run takes: wall time (default), or a pattern that finds seconds in the output.",
        "wall|REGEX",
        parse=parse_metric,
    )
    repetitions: int = option("Number of repetitions.", "N", spelled="--repeat", default=5, type=REPEAT)
    budget: float | None = option("No repetition begins after this time; two are always measured.", "TIME")
    patience: float | None = timeout_option("Time limit of one run.")


class MeasureDemand(Verb):
    """Measure what CMD loses beside a known load, and what load it is itself; no counters are needed.

    Runs CMD alone and beside memory traffic of known rates and cache footprints on cores that it does not
    use, in turns, and writes demand.json into the profile P, for `colocate predict` and `diagnose --profile`.
    Exit code 3 means that the machine was too busy to say anything.
    """

    name = "colocate demand"
    has_tables = True

    profile: Path | str = argument(metavar="P")
    measuring: DemandSettings = included(DemandSettings)
    dry_run: bool = dry_run_option()
    words: tuple[str, ...] = command_argument()
    tell: Callable[[str], object] = chatter

    def do(self) -> Demand:
        """Measures the demand of a command, and writes it into the profile of the same program.

        UsageError for what is no profile, MachineError where the program or the load fails.
        """
        from elbowroom.measure.demand import write_demand
        from elbowroom.profile.profile import read_profile

        self._check()
        profile = read_profile(Path(self.profile))
        demand = measured_demand(self.words, self.measuring, profile, self.tell)
        write_demand(demand, Path(self.profile))
        return demand

    def _check(self) -> None:
        if not self.words:
            raise UsageError(
                "is missing",
                field="command",
                hint="write it behind --: -- mpirun -n 2 ./app, as it was profiled",
            )

    def planned_starts(self) -> Iterator[PlannedStart]:
        self._check()
        yield planned_demand(self.words, self.measuring)

    def print(self, result: Demand) -> None:
        """Both curves and pressures."""
        print_demand(result)

    def answer(self, result: Demand) -> Answer:
        """What the program loses at most, and as much as what load it is."""
        following = command_line("colocate", "predict", self.profile, "OTHER.prof")
        if not result.trusted:
            again = command_line("colocate", "demand", self.profile, "--repeat", "9", "--", *self.words)
            return Answer(
                f"Cannot say: {'; '.join(result.notes)}.",
                "The values hold for a quiet machine only.",
                again,
                "yellow",
            )
        return Answer(*demand_sentences(result), following)


def measured_demand(
    words: tuple[str, ...],
    settings: DemandSettings,
    profile: Profile,
    tell: Callable[[str], object] = chatter,
) -> Demand:
    """Runs a command alone and beside loads on this host; `profile`: of the same program."""
    from elbowroom.measure.demand import host_bench, measure_demand

    with host_bench(
        words,
        ranks=-(-profile.size // profile.nodes),
        load_cores=settings.load_cores,
        metric=settings.metric,
        patience=settings.patience,
    ) as bench:
        return measure_demand(bench, repetitions=settings.repetitions, budget=settings.budget, tell=tell)


def planned_demand(words: tuple[str, ...], settings: DemandSettings) -> PlannedStart:
    """What is started, in a dry run."""
    load_split(os.sched_getaffinity(0), settings.load_cores)
    load_program()
    return PlannedStart(
        what="the program alone and beside a load of known memory traffic, in turns",
        commands=(shlex.join(words),),
        times=1 + RUNS_PER_REPETITION * settings.repetitions,
        seconds=settings.budget,
    )


def print_demand(demand: Demand) -> None:
    """Both curves, and the pressures."""
    print_wrapped(
        f"Time beside a load on {plural(len(demand.load_cores), 'core')}, by time alone "
        f"({short_time(demand.seconds)})",
        style="bold",
    )
    if demand.ranks > len(demand.cores):
        both = f"{plural(demand.ranks, 'rank')} shared {plural(len(demand.cores), 'core')}"
        print_wrapped(f"{both}, alone as well: the load had the others.")
    table = new_table("load", ">25 %", ">50 %", ">100 %", ">90 %", ">is itself")
    for curve, pressure in zip(demand.sensitivity, demand.pressure, strict=True):
        most = curve.slower[-1]
        cells = (f"{one.value:.2f}" for one in curve.slower)
        span = f"{most.low:.2f} to {most.high:.2f}"
        table.add_row(_axis(demand, curve.axis), *cells, span, _share(pressure))
    print_table(table)


def demand_sentences(demand: Demand) -> tuple[str, str]:
    """What the program loses beside the largest load, and what load it is."""
    most = max((curve.slower[-1] for curve in demand.sensitivity), key=lambda one: one.value)
    loss = percent_span(most.value - 1, most.low - 1, most.high - 1)
    traffic = demand.traffic
    as_load = (
        "What load it is itself is not known: " + demand.pressure[0].unresolved
        if traffic is None
        else f"It is as much of a load as {traffic / 1e9:.3g} GB/s to and from memory"
    )
    return f"Beside the largest load the program takes {loss} longer.", f"{as_load}."


def demand_sentence(demand: Demand) -> str:
    """What the program loses and is itself, in one paragraph; or why nothing can be said."""
    if not demand.trusted:
        return f"The demand is not known: {'; '.join(demand.notes)}."
    return " ".join(demand_sentences(demand))


def _axis(demand: Demand, axis: str) -> str:
    if axis == "memory":
        return f"memory, {demand.full_rate / 1e9:.3g} GB/s"
    return f"cache, {format_size(demand.cache)}"


def _share(pressure: Pressure) -> str:
    if pressure.unresolved:
        return "unknown"
    return f"{100 * pressure.share.value:.0f} %"


measure_demand = function_of(MeasureDemand, "measure_demand")
