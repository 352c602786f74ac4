"""Forecasts of co-location: what jobs cost each other on shared nodes, from profiles of each alone."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations_with_replacement
from pathlib import Path

import msgspec

from elbowroom.api.memory_use import contention_of
from elbowroom.api.network_calibration import load_curve
from elbowroom.errors import UsageError
from elbowroom.files import write_atomically
from elbowroom.profile.analysis import Analysis, analyse
from elbowroom.profile.forecast import OFFSETS, Forecast, forecast
from elbowroom.profile.profile import read_profile
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


def forecast_colocation(
    profiles: Sequence[str | Path],
    *,
    curve: str | Path | None = None,
    half: bool = False,
    offsets: int = OFFSETS,
    seed: int = 0,
    model: Model | str | Path | None = None,
    memory: Sequence[str] = (),
    cache: Sequence[str] = (),
    llc: str | None = None,
) -> ForecastDocument:
    """Replays the jobs of these profiles on shared NICs, pair by pair; nothing is run.

    `curve`: a file of `profile calibrate`; without it the NIC is the one that `network_intervals` assumes.
    `half`: each job has half of its ranks on a node, on twice the nodes, and is compared with itself on all.
    `model`: a FLOW model of the machine, for memory and last-level cache; `memory` (`job=6.2GB/s`) and
    `cache` (`job=20MiB@30GB/s`) state what counters do not say, `llc` the size of the last-level cache.
    UsageError for what is no profile, and for a model of another machine.
    """
    _check_options(model, memory, cache, llc)
    names = [Path(one).name.removesuffix(".prof") for one in profiles]
    for name in names:
        if names.count(name) > 1:
            raise UsageError("names two profiles", field="profiles", value=name, hint="rename a folder")
    nic = None if curve is None else load_curve(curve)
    jobs: dict[str, Analysis] = {
        name: analyse(read_profile(Path(folder)), nic) for name, folder in zip(names, profiles, strict=True)
    }
    contention = None
    if model is not None:
        contention = contention_of(model, jobs, memory=memory, cache=cache, llc=llc, half=half)
    pairs, notes = [], dict[str, None]()
    for a, b in combinations_with_replacement(names, 2):
        found = forecast(jobs[a], jobs[b], contention=contention, half=half, offsets=offsets, seed=seed)
        slower = (_slowdown(found.slowdown_a), _slowdown(found.slowdown_b))
        pairs.append(ForecastPair(a=a, b=b, slowdown_a=slower[0], slowdown_b=slower[1]))
        notes.update(dict.fromkeys(found.notes))
    return ForecastDocument(half=half, jobs=tuple(names), pairs=tuple(pairs), notes=tuple(notes))


def _check_options(
    model: Model | str | Path | None, memory: Sequence[str], cache: Sequence[str], llc: str | None
) -> None:
    for field, value in (("memory", memory), ("cache", cache), ("llc", llc)):
        if value and model is None:
            raise UsageError(
                "is only used with a model of the machine",
                field=field,
                value=value if isinstance(value, str) else value[0],
                hint="add --model M.json",
            )


def _slowdown(found: Forecast) -> Slowdown:
    return Slowdown(value=found.value, low=found.low, high=found.high)


def save_forecast(document: ForecastDocument, file: str | Path) -> None:
    """Writes the matrix that `colocate schedule --matrix` reads (.csv)."""
    write_atomically(Path(file), document.csv().encode())
