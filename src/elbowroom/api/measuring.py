"""Measuring and comparing, as Python sees it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from elbowroom.api.runs import Run, open
from elbowroom.plan.reading import Overrides

if TYPE_CHECKING:
    from elbowroom.campaign.running import Prepared, Request
    from elbowroom.stats.comparing import Change


def chatter(sentence: str) -> None:
    """Tells the person who waits, on stderr."""
    print(sentence, file=sys.stderr, flush=True)


def run(
    plan: str,
    *,
    out: str | None = None,
    overrides: Overrides | None = None,
    launcher: str | None = None,
    mpi: str | None = None,
    hosts: Sequence[str] = (),
    hostfile: str | None = None,
    seed: int | None = None,
    reverse: bool = False,
    patience: float | None = None,
    command: Sequence[str] = (),
    report: bool = True,
    tell: Callable[[str], object] = chatter,
) -> Run:
    """Measures a plan into a new run folder; see `elbowroom run --help` for the options."""
    from elbowroom.campaign import running

    request = _request(plan, out, overrides, launcher, mpi, hosts, hostfile, seed, reverse, patience, command)
    folder, results = running.start(request, tell)
    return _reported(Run(folder, results), report)


def resume(
    path: Path | str,
    *,
    launcher: str | None = None,
    mpi: str | None = None,
    hosts: Sequence[str] = (),
    hostfile: str | None = None,
    patience: float | None = None,
    retry_failed: bool = False,
    report: bool = True,
    tell: Callable[[str], object] = chatter,
) -> Run:
    """Measures what an interrupted run still lacks."""
    from elbowroom.campaign import running
    from elbowroom.campaign.sources import Where

    where = Where(launcher=launcher, mpi=mpi, hosts=tuple(hosts), hostfile=hostfile)
    folder, results = running.resume(
        Path(path), tell, where=where, patience=patience, retry_failed=retry_failed
    )
    return _reported(Run(folder, results), report)


def _reported(done: Run, report: bool) -> Run:
    if report:
        done.report()
    return done


def dry_run(
    plan: str,
    *,
    overrides: Overrides | None = None,
    launcher: str | None = None,
    mpi: str | None = None,
    hosts: Sequence[str] = (),
    hostfile: str | None = None,
    seed: int | None = None,
    reverse: bool = False,
) -> Prepared:
    """What `run` would do: points, notes, command lines and the time it would take. Measures nothing."""
    from elbowroom.campaign import running
    from elbowroom.campaign.sources import choose

    request = _request(plan, None, overrides, launcher, mpi, hosts, hostfile, seed, reverse, None, ())
    return running.prepare(request, choose(request.where))


def _request(
    plan: str,
    out: str | None,
    overrides: Overrides | None,
    launcher: str | None,
    mpi: str | None,
    hosts: Sequence[str],
    hostfile: str | None,
    seed: int | None,
    reverse: bool,
    patience: float | None,
    command: Sequence[str],
) -> Request:
    from elbowroom.campaign.running import Request
    from elbowroom.campaign.sources import Where

    return Request(
        plan=plan,
        overrides=overrides or Overrides(),
        where=Where(launcher=launcher, mpi=mpi, hosts=tuple(hosts), hostfile=hostfile),
        out=out,
        seed=seed,
        reverse=reverse,
        patience=patience,
        command=tuple(command),
    )


def compare(a: Run | Path | str, b: Run | Path | str) -> list[Change]:
    """Changes from run `a` to run `b` of all values both have."""
    from elbowroom.stats.comparing import compare as changes

    first, second = (item if isinstance(item, Run) else open(item) for item in (a, b))
    return changes(first.points(), second.points())
