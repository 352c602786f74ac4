"""Measuring and comparing, as Python sees it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from elbowroom.api.runs import Run, open
from elbowroom.plan.reading import Overrides

if TYPE_CHECKING:
    from elbowroom.campaign.running import Prepared
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
    machine: str | None = None,
    noise: float | None = None,
    seed: int | None = None,
    reverse: bool = False,
    patience: float | None = None,
    command: Sequence[str] = (),
    trace: bool = False,
    report: bool = True,
    tell: Callable[[str], object] = chatter,
) -> Run:
    """Measures a plan into a new run folder; see `elbowroom run --help` for the options.

    `trace`: what the probe's threads do is recorded into OUT.trace/1 (and 2, ... where the probe is started
    again), traces as `elbowroom trace` reads them; some ten ns for each chunk of a millisecond.

    `machine`: a virtual one answers instead (a published name or a file, docs/virtual.md), with `noise` as
    the relative standard deviation of its values, and `seed` for that and for the order of points.
    """
    from elbowroom.campaign import running
    from elbowroom.campaign.sources import Where

    where = Where(
        launcher=launcher,
        mpi=mpi,
        hosts=tuple(hosts),
        hostfile=hostfile,
        machine=machine,
        noise=noise,
        seed=seed if machine is not None else None,
    )
    request = running.Request(
        plan=plan,
        overrides=overrides or Overrides(),
        where=where,
        out=out,
        seed=seed,
        reverse=reverse,
        patience=patience,
        command=tuple(command),
        trace=trace,
    )
    folder, results = running.start(request, tell)
    if trace:
        traces = running.traces_of(folder.path)
        tell(f"recorded: {traces} (elbowroom trace merge {traces / '1'} -o timeline.html)")
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
    machine: str | None = None,
    noise: float | None = None,
    seed: int | None = None,
    reverse: bool = False,
) -> Prepared:
    """What `run` would do: points, notes, command lines and the time it would take. Measures nothing."""
    from elbowroom.campaign import running
    from elbowroom.campaign.sources import Where, choose

    where = Where(
        launcher=launcher, mpi=mpi, hosts=tuple(hosts), hostfile=hostfile, machine=machine, noise=noise
    )
    request = running.Request(
        plan=plan, overrides=overrides or Overrides(), where=where, seed=seed, reverse=reverse
    )
    request = running.settled(request, lambda _: None)
    return running.prepare(request, choose(request.where))


def compare(a: Run | Path | str, b: Run | Path | str) -> list[Change]:
    """Changes from run `a` to run `b` of all values both have."""
    from elbowroom.stats.comparing import compare as changes

    first, second = (item if isinstance(item, Run) else open(item) for item in (a, b))
    return changes(first.points(), second.points())
