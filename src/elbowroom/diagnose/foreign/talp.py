"""JSON of TALP, the profiler of the DLB library: metrics of each region of the whole program, and with
`--talp-summary=process` times of each process.

The metrics are in `popMetrics` (a table of regions, in the oldest releases a list) or `Application`, times of
processes in `Process` or `process`. Times are in ns, those of a region sums over its CPUs (DLB,
src/talp/talp_output.c and perf_metrics.c: parallel efficiency = useful / all CPU time).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from elbowroom.diagnose.foreign.profile import FIELD, Efficiencies, ForeignProfile, RankTime, damaged
from elbowroom.errors import UsageError

FORMAT = "TALP JSON"
WRITTEN_BY = "DLB (DLB_ARGS='--talp --talp-output-file=FILE.json')"
NANO = 1e-9
WHOLE = ("Global", "Application", "MPI Execution")
"""Regions that are the whole program, in different releases."""
OPENMP = ("ompLoadImbalanceTime", "ompSchedulingTime", "ompSerializationTime")
_METRICS = ("popMetrics", "Application")
_PROCESSES = ("Process", "process", "processes")
_KNOWN = re.compile(rb'"(popMetrics|elapsedTime|usefulTime|dlbVersion|parallelEfficiency)"')


def is_of(start: bytes) -> bool:
    """Whether a file begins like one."""
    return start.lstrip().startswith(b"{") and _KNOWN.search(start) is not None


def part_of(lines: Sequence[str]) -> range | None:
    """The lines of a log that are its first object with metrics; None without one."""
    for first, line in enumerate(lines):
        if not line.startswith("{"):
            continue
        text = "\n".join(lines[first:])
        try:
            stop = json.JSONDecoder().raw_decode(text)[1]
        except (ValueError, RecursionError):
            stop = len(text)
        if _KNOWN.search(text[:stop].encode()):
            return range(first, first + text[:stop].count("\n") + 1)
    return None


def read(text: str, path: Path) -> ForeignProfile:
    """The profile of the whole program, or else of the longest region; UsageError for what is damaged."""
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise damaged(path, error.lineno, f"is not JSON ({error.msg})", WRITTEN_BY) from error
    except RecursionError as error:
        raise damaged(path, 1, "is not JSON (too deep)", WRITTEN_BY) from error
    regions = _regions(data)
    if not regions:
        raise UsageError(
            "has no metrics of a region ('popMetrics' or 'Application')",
            field=FIELD,
            value=str(path),
            hint=f"{WRITTEN_BY} writes such files, with --talp-summary=pop-metrics (its default)",
        )
    values = _Values(text, path)
    name = next((one for one in WHOLE if one in regions), None)
    if name is None:
        name = max(regions, key=lambda one: values.get(regions[one], "elapsedTime") or 0.0)
    region = regions[name]
    values.below = name
    elapsed = values.get(region, "elapsedTime")
    if not elapsed:
        raise values.error("elapsedTime", f"of region {name!r} is missing or 0: nothing was measured")
    processes = _processes(data, name, values)
    values.below = name
    useful, mpi = _shares(region, elapsed, processes, values)
    others = [one for one in regions if one != name]
    notes = [f"other regions of the file are not used: {', '.join(others)}"] if others else []
    if openmp := sum(values.get(region, one) or 0.0 for one in OPENMP):
        total = openmp + sum(values.get(region, one) or 0.0 for one in ("usefulTime", "mpiTime"))
        notes.append(
            f"threads of OpenMP wait for {100 * openmp / total:.1f} % of the CPU time: not explained"
        )
    ranks = values.get(region, "numMpiRanks")
    return ForeignProfile(
        format=FORMAT,
        written_by=WRITTEN_BY,
        region=name,
        seconds=elapsed * NANO,
        useful=useful,
        mpi=mpi,
        ranks=int(ranks) if ranks else len(processes) or None,
        by_rank=processes,
        pop=Efficiencies(
            parallel_efficiency=values.share(region, "parallelEfficiency"),
            load_balance=values.share(region, "mpiLoadBalance", "loadBalance"),
            communication=values.share(region, "mpiCommunicationEfficiency", "communicationEfficiency"),
        ),
        notes=tuple(notes),
    )


class _Values:
    """Numbers of the file, and where they are, for errors; `below`: the key behind which they are."""

    def __init__(self, text: str, path: Path) -> None:
        self._text, self._path = text, path
        self.below = ""

    def error(self, key: str, what: str) -> UsageError:
        """The error for the line with that key."""
        place = self._text.find(f'"{key}"', max(self._text.find(f'"{self.below}"'), 0))
        line = self._text.count("\n", 0, max(place, 0)) + 1
        return damaged(self._path, line, f"({key}) {what}", WRITTEN_BY)

    def get(self, table: Mapping[str, Any], *keys: str) -> float | None:
        """The first of these that is there; UsageError for what is not a time or count."""
        for key in keys:
            value = table.get(key)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
                raise self.error(key, f"is {value!r}, which is not a number from 0")
            return float(value)
        return None

    def share(self, table: Mapping[str, Any], *keys: str) -> float | None:
        """An efficiency; None for 0, which TALP writes for what it did not measure."""
        value = self.get(table, *keys)
        # Two digits are printed.
        if value is not None and value > 1.01:
            raise self.error(keys[0], f"is {value:g}, and efficiencies are at most 1")
        return min(value, 1.0) if value else None


def _regions(data: Any) -> dict[str, dict[str, Any]]:
    """The metrics of each region by name."""
    if not isinstance(data, dict):
        return {}
    for key in _METRICS:
        metrics = data.get(key)
        if isinstance(metrics, list):
            metrics = {
                str(one.get("name", place)): one for place, one in enumerate(metrics) if isinstance(one, dict)
            }
        if isinstance(metrics, dict):
            tables = {name: one for name, one in metrics.items() if isinstance(one, dict)}
            if any("elapsedTime" in one for one in tables.values()):
                return tables
    return {}


def _processes(data: Mapping[str, Any], region: str, values: _Values) -> tuple[RankTime, ...]:
    """Times of each process in a region: outside MPI and inside, their sum as its duration."""
    values.below = next((key for key in _PROCESSES if key in data), "")
    table = data.get(values.below)
    rows = table.get(region, []) if isinstance(table, dict) else table
    ranks = []
    for place, row in enumerate(rows or []):
        if not isinstance(row, dict) or row.get("name", region) != region:
            continue
        useful, inside = values.get(row, "usefulTime"), values.get(row, "mpiTime")
        if useful is None or inside is None:
            continue
        rank = values.get(row, "rank")
        waiting = sum(values.get(row, one) or 0.0 for one in OPENMP)
        ranks.append(
            RankTime(
                rank=place if rank is None else int(rank),
                seconds=(useful + inside + waiting) * NANO,
                mpi_s=inside * NANO,
            )
        )
    return tuple(sorted(ranks, key=lambda one: one.rank))


def _shares(
    region: Mapping[str, Any], elapsed: float, processes: tuple[RankTime, ...], values: _Values
) -> tuple[float | None, float | None]:
    """Useful and MPI time by all CPU time; by the efficiencies in releases without these times."""
    useful, inside = values.get(region, "usefulTime"), values.get(region, "mpiTime")
    if useful is not None and inside is not None:
        total = useful + inside + sum(values.get(region, one) or 0.0 for one in OPENMP)
        if total:
            return useful / total, inside / total
    if processes:
        total = sum(one.seconds for one in processes)
        inside = sum(one.mpi_s for one in processes)
        return (1 - inside / total, inside / total) if total else (None, None)
    cpus = values.get(region, "numCpus")
    if useful is not None and cpus:
        return min(1.0, useful / (elapsed * cpus)), None
    return values.share(region, "parallelEfficiency"), None
