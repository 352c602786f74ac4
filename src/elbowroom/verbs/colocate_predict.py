"""`elbowroom colocate predict`: what jobs cost each other on shared nodes, from profiles of each alone."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations_with_replacement
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from elbowroom.cli.answer import Answer, command_line
from elbowroom.cli.console import print_all, print_wrapped
from elbowroom.cli.options import Output
from elbowroom.cli.tables import new_table, print_table
from elbowroom.errors import UsageError
from elbowroom.files import write_atomically
from elbowroom.quantities import percent_span, plural
from elbowroom.verbs.declaration import Verb, argument, function_of, option
from elbowroom.verbs.run_options import out_option

if TYPE_CHECKING:
    from elbowroom.profile.analysis import Analysis
    from elbowroom.profile.forecast import Forecast
    from elbowroom.verbs.model_file import Model

PERCENT = 100.0


class Slowdown(msgspec.Struct, frozen=True, kw_only=True):
    """Duration together by duration alone, with a 90 % interval over the offsets of both jobs."""

    value: float
    low: float
    high: float


class ForecastPair(msgspec.Struct, frozen=True, kw_only=True):
    """Two jobs on the same nodes."""

    a: str
    b: str
    slowdown_a: Slowdown
    slowdown_b: Slowdown


class ForecastDocument(msgspec.Struct, frozen=True, kw_only=True):
    """What `colocate predict --json` prints: all pairs, each job also with itself. `half`: of the profiled
    ranks of a node each job keeps half, on twice the nodes. `notes`: what was left out.
    """

    schema: str = "elbowroom/colocation-forecast"
    version: int = 1
    half: bool
    jobs: tuple[str, ...]
    pairs: tuple[ForecastPair, ...]
    notes: tuple[str, ...]

    def csv(self) -> str:
        """As `colocate schedule --matrix` reads it: columns are the jobs that are slowed down."""
        percent = {}
        for pair in self.pairs:
            percent[pair.b, pair.a] = PERCENT * pair.slowdown_a.value
            percent[pair.a, pair.b] = PERCENT * pair.slowdown_b.value
        lines = [",".join(("companion", *self.jobs))]
        for row in self.jobs:
            lines.append(",".join((row, *(f"{percent[row, column]:.2f}" for column in self.jobs))))
        return "\n".join(lines) + "\n"


class PredictColocation(Verb):
    """Predict how much jobs slow each other down on shared nodes, from a profile of each alone.

    Replays each pair on one NIC per node, at random offsets. No pair is run. With the demand of all jobs
    (`colocate demand`) both also share the node's memory and last-level cache, and with --model by a model;
    without counters and demand, state what the jobs do there.
    """

    name = "colocate predict"
    has_tables = True
    saves = True

    profiles: Sequence[str | Path] = argument(nargs=-1, metavar="PROFILE...")
    half: bool = option("Each job has half of its ranks on a node, on twice the nodes.")
    curve: str | Path | None = option("NIC: a file that `nic measure -o` wrote; default: from the profiles.")
    model: Model | str | Path | None = option(
        "FLOW model of the machine, for memory and last-level cache.", "M.json"
    )
    memory: Sequence[str] = option("Memory traffic on a node while JOB computes: cg=6.2GB/s.", "JOB=RATE")
    cache: Sequence[str] = option(
        "What JOB reuses on a node, and how fast: cg=20MiB@30GB/s.", "JOB=SIZE@RATE"
    )
    llc: int | str | None = option("Last-level cache that jobs share; default: the profiled host's.", "SIZE")
    seed: int = option("Seed of the offsets.", default=0, type=click.IntRange(min=0))
    out: str | Path | None = out_option(
        Output(".csv"), "Write the matrix for `colocate schedule --matrix`.", "M.csv"
    )
    offsets: int = 32

    def do(self) -> ForecastDocument:
        """Replays the jobs of these profiles on shared NICs, pair by pair; nothing is run.

        `curve`: a file of `nic measure`; without it the NIC is the one that `network_intervals`
        assumes. `half`: each job has half of its ranks on a node, on twice the nodes, and is compared with
        itself on all. `model`: a FLOW model of the machine, for memory and last-level cache; `memory`
        (`job=6.2GB/s`) and `cache` (`job=20MiB@30GB/s`) state what counters do not say, `llc` the size of the
        last-level cache. Without a model memory and cache are those of `colocate demand`, if all profiles
        have one. UsageError for what is no profile, and for a model of another machine.
        """
        from elbowroom.advise.demand_use import contention_of_demands
        from elbowroom.advise.memory_use import contention_of
        from elbowroom.profile.analysis import analyse
        from elbowroom.profile.curve import load_curve
        from elbowroom.profile.forecast import forecast
        from elbowroom.profile.profile import read_profile
        from elbowroom.verbs.model_file import load_model

        _check_options(self.model, self.memory, self.cache, self.llc)
        names = [Path(one).name.removesuffix(".prof") for one in self.profiles]
        for name in names:
            if names.count(name) > 1:
                raise UsageError("names two profiles", field="profiles", value=name, hint="rename a folder")
        nic = None if self.curve is None else load_curve(self.curve)
        jobs: dict[str, Analysis] = {
            name: analyse(read_profile(Path(folder)), nic)
            for name, folder in zip(names, self.profiles, strict=True)
        }
        contention = None
        if self.model is None and not self.half:
            contention = contention_of_demands(jobs)
        if self.model is not None:
            contention = contention_of(
                load_model(self.model).document,
                jobs,
                memory=self.memory,
                cache=self.cache,
                llc=self.llc,
                half=self.half,
            )
        pairs, notes = [], dict[str, None]()
        for a, b in combinations_with_replacement(names, 2):
            predicted = forecast(
                jobs[a],
                jobs[b],
                contention=contention,
                half=self.half,
                offsets=self.offsets,
                seed=self.seed,
            )
            slower = (_slowdown(predicted.slowdown_a), _slowdown(predicted.slowdown_b))
            pairs.append(ForecastPair(a=a, b=b, slowdown_a=slower[0], slowdown_b=slower[1]))
            notes.update(dict.fromkeys(predicted.notes))
        return ForecastDocument(half=self.half, jobs=tuple(names), pairs=tuple(pairs), notes=tuple(notes))

    def print(self, result: ForecastDocument) -> None:
        print_wrapped(
            "Predicted duration beside a companion by duration alone; nothing was run", style="bold"
        )
        table = new_table("a", "b", ">a slower", ">b slower")
        for pair in result.pairs:
            table.add_row(pair.a, pair.b, _interval(pair.slowdown_a), _interval(pair.slowdown_b))
        print_table(table)
        print_all(result.notes, style="yellow")

    def answer(self, result: ForecastDocument) -> Answer:
        """The pair that loses least, beside the one that loses most."""
        ordered = sorted(result.pairs, key=lambda pair: max(pair.slowdown_a.value, pair.slowdown_b.value))
        best, worst = ordered[0], ordered[-1]
        where = "on half of the cores each" if result.half else "on all cores each"
        sides = f"{best.a} takes {_longer(best.slowdown_a)}, {best.b} {_longer(best.slowdown_b)}"
        beside = f"{worst.a} beside {worst.b}: {_longer(worst.slowdown_a)} and {_longer(worst.slowdown_b)}"
        why = f"The worst of {plural(len(ordered), 'pair')} is {beside}."
        if self.out is not None and len(result.jobs) > 1:
            following = command_line("colocate", "schedule", "--matrix", self.out)
        else:
            following = self.again(out="matrix.csv")
        return Answer(f"{best.a} and {best.b} suit each other best, {where}: {sides}.", why, following)


def _longer(slowdown: Slowdown) -> str:
    """`12 % longer (8.0 to 15 %)`."""
    ends = (slowdown.value - 1, slowdown.low - 1, slowdown.high - 1)
    if slowdown.value < 1:
        return f"{percent_span(*(-end for end in (ends[0], ends[2], ends[1])))} less"
    return f"{percent_span(*ends)} more"


forecast_colocation = function_of(PredictColocation, "forecast_colocation")


def _interval(slowdown: Slowdown) -> str:
    return f"{slowdown.value:.2f} ({slowdown.low:.2f} to {slowdown.high:.2f})"


def _check_options(
    model: Model | str | Path | None, memory: Sequence[str], cache: Sequence[str], llc: int | str | None
) -> None:
    for field, value in (("memory", memory), ("cache", cache), ("llc", llc)):
        if value and model is None:
            raise UsageError(
                "is only used with a model of the machine",
                field=field,
                value=value if isinstance(value, str | int) else value[0],
                hint="add --model M.json",
            )


def _slowdown(predicted: Forecast) -> Slowdown:
    return Slowdown(value=predicted.value, low=predicted.low, high=predicted.high)


def save(document: ForecastDocument, path: Path) -> None:
    """Writes the matrix that `colocate schedule --matrix` reads (.csv)."""
    write_atomically(path, document.csv().encode())
