"""Traces with a known cost of overlap: a simulation of ranks whose computation slows beside communication.

Independent of the analysis: communication and the work of each computation are drawn first; a computation
advances at 1 / slowdown of its speed while the communication that disturbs it is active. Each step has the
same computations in the same order; the works of one kernel differ between places. Durations have noise,
outliers, a drift, and phases: in the second phase everything takes twice as long and communication is active
far more often, so that a comparison of all instances would find an effect that does not exist.

`scheduled` is a program whose schedule hides communication at the same places of each step.
"""

from __future__ import annotations

import gzip
import json
import sqlite3
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

COMPUTE, COMM = 7, 13
"""Streams."""
KERNELS = {"gemm": 120.0, "attention": 60.0, "layernorm": 25.0, "gelu": 40.0}
"""us that each takes alone in the first phase."""
COLLECTIVES = ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL")

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What to simulate. `slowdown`: of every kernel beside any collective, or by (kernel, collective);
    `places` of a step, and the `spread` of the works of one kernel between them.
    """

    seed: int = 1
    ranks: int = 1
    instances: int = 1500
    slowdown: float | Mapping[tuple[str, str], float] = 1.0
    noise: float = 0.04
    outliers: float = 0.01
    drift: float = 0.2
    phases: int = 4
    places: int = 12
    spread: float = 0.3
    clock_offset: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Span:
    """An event on a stream; times in us."""

    rank: int
    stream: int
    name: str
    start: float
    duration: float
    correlation: int = 0


@dataclass
class Made:
    """The spans of a simulation, and what is true of it: mean seconds of a rank."""

    spans: list[Span] = field(default_factory=list)
    cost_s: float = 0.0
    hidden_s: float = 0.0
    exposed_s: float = 0.0
    ranks: int = 1
    steps: list[tuple[int, int, float, float]] = field(default_factory=list)


def make(recipe: Recipe) -> Made:
    """Simulates all ranks."""
    made = Made(ranks=recipe.ranks)
    for rank in range(recipe.ranks):
        _rank(made, recipe, rank, np.random.default_rng([recipe.seed, rank]))
    made.spans.sort(key=lambda span: span.start)
    return made


def _rank(made: Made, recipe: Recipe, rank: int, random: np.random.Generator) -> None:
    offset = recipe.clock_offset * rank + 1e6
    names = list(KERNELS)
    program = np.random.default_rng([recipe.seed, 77])
    place = np.arange(recipe.instances) % recipe.places
    order = program.permutation(np.arange(recipe.places) % len(names))[place]
    longer = np.exp(program.normal(0, recipe.spread, recipe.places))[place]
    phase = (np.arange(recipe.instances) * recipe.phases // recipe.instances) % 2
    drift = 1 + recipe.drift * np.linspace(0, 1, recipe.instances)
    noise = np.exp(random.normal(0, recipe.noise, recipe.instances))
    noise[random.random(recipe.instances) < recipe.outliers] *= 3
    works = np.array([KERNELS[names[one]] for one in order]) * longer * (1 + phase) * drift * noise
    gaps = random.exponential(2.0, recipe.instances)
    comm = _communication(random, works, gaps, phase)
    at = 0.0
    number = 0
    hidden = cost = 0.0
    begins = []
    for index, (kernel, work, gap) in enumerate(zip(order, works, gaps, strict=True)):
        begin = at + gap
        if place[index] == 0:
            begins.append(at)
        end, number, shared, lost = _advance(begin, float(work), names[kernel], comm, number, recipe)
        hidden, cost = hidden + shared, cost + lost
        made.spans.append(
            Span(rank=rank, stream=COMPUTE, name=names[kernel], start=begin + offset, duration=end - begin,
                 correlation=1000 + index + 10_000_000 * rank)
        )  # fmt: skip
        at = end
    total = 0.0
    for number, (begin, end, which) in enumerate(comm):
        if begin < at:
            total += end - begin
            made.spans.append(
                Span(rank=rank, stream=COMM, name=COLLECTIVES[which], start=begin + offset,
                     duration=end - begin, correlation=900_000 + number + 10_000_000 * rank)
            )  # fmt: skip
    for step, (begin, end) in enumerate(zip(begins, [*begins[1:], at], strict=True)):
        made.steps.append((rank, step, begin + offset, end - begin))
    made.hidden_s += hidden / 1e6 / recipe.ranks
    made.cost_s += cost / 1e6 / recipe.ranks
    made.exposed_s += (total - hidden) / 1e6 / recipe.ranks


def _communication(
    random: np.random.Generator, works: Numbers, gaps: Numbers, phase: npt.NDArray[np.int_]
) -> list[tuple[float, float, int]]:
    """Begins, ends and kinds; three times as often in the second phase."""
    horizon = np.cumsum(works + gaps)
    comm, at = [], 0.0
    while at < 2.0 * horizon[-1]:
        dense = phase[min(int(np.searchsorted(horizon, at)), len(phase) - 1)]
        at += float(random.exponential(250.0 if dense else 900.0)) + 20.0
        length = float(random.lognormal(np.log(350.0), 0.5))
        comm.append((at, at + length, int(random.integers(0, len(COLLECTIVES)))))
        at += length
    return comm


def _advance(
    begin: float, work: float, kernel: str, comm: list[tuple[float, float, int]], number: int, recipe: Recipe
) -> tuple[float, int, float, float]:
    """When the kernel ends, the next communication, the shared time and what of it is lost."""
    at, shared, lost = begin, 0.0, 0.0
    while number < len(comm) and comm[number][1] <= at:
        number += 1
    place = number
    while True:
        first, last, which = comm[place] if place < len(comm) else (np.inf, np.inf, 0)
        free = max(0.0, first - at)
        if work <= free:
            return at + work, number, shared, lost
        at, work = at + free, work - free
        slowdown = recipe.slowdown
        rate = (
            slowdown if isinstance(slowdown, float | int) else slowdown.get((kernel, COLLECTIVES[which]), 1.0)
        )
        room = (last - at) / rate
        if work <= room:
            shared += work * rate
            return at + work * rate, number, shared, lost + work * (rate - 1)
        shared, lost, work, at = shared + (last - at), lost + room * (rate - 1), work - room, last
        place += 1


SCHEDULED = range(4, 8)
"""Places that a schedule covers."""


def scheduled(
    *,
    steps: int = 60,
    places: int = 12,
    longer: float = 1.0,
    slowdown: float = 1.0,
    share: float = 1.0,
    cut: bool = True,
    where: range = SCHEDULED,
    ramp: float = 0.0,
    pace: int = 0,
    seed: int = 1,
) -> Made:
    """A step has `places` times the same kernel, and a collective that covers those `where`, in a `share` of
    the steps, or some of them (`cut`); at all of them kernels are `longer` by themselves, and take `slowdown`
    times as long beside the collective. The clock slows by `ramp` over the run, and communication is more
    frequent towards its end. All takes `pace` % longer.
    """
    random = np.random.default_rng(seed)
    made, at = Made(), 1e6
    for step in range(steps):
        begun = at
        present = random.random() < share * (1 if share == 1 or not ramp else 2 * (step + 0.5) / steps)
        first, last = where[0], where[-1]
        if share < 1 and cut:
            first, last = sorted(random.choice(where, 2, replace=False))
        comm = [0.0, 0.0]
        for place in range(places):
            work = 100.0 * (longer if place in where else 1.0) * (1 + ramp * step / steps + 0.01 * pace)
            covered = present and first <= place <= last
            lasts = work * float(np.exp(random.normal(0, 0.02))) * (slowdown if covered else 1.0)
            if covered:
                comm = [comm[0] or at, at + lasts]
                made.hidden_s += lasts / 1e6
                made.cost_s += lasts * (1 - 1 / slowdown) / 1e6
            made.spans.append(Span(rank=0, stream=COMPUTE, name="gemm", start=at, duration=lasts))
            at += lasts + 2.0
        if present:
            made.spans.append(
                Span(
                    rank=0,
                    stream=COMM,
                    name=COLLECTIVES[0],
                    start=comm[0] - 0.5,
                    duration=comm[1] - comm[0] + 1,
                )
            )
        made.steps.append((0, step, begun - 1, at - begun))
    return made


def kineto(
    made: Made,
    *,
    rank: int | None = None,
    named: bool = True,
    renamed: bool = False,
    streams: bool = True,
    launches: bool = False,
) -> bytes:
    """As PyTorch's profiler writes it. `named`: with its steps; `renamed`: collectives have a name that says
    nothing; without `streams` no event says its stream; `launches`: the host's operations that launched the
    collectives.
    """
    events: list[dict[str, Any]] = []
    for span in made.spans:
        if rank is not None and span.rank != rank:
            continue
        comm = span.stream == COMM
        args: dict[str, Any] = {"device": span.rank, "correlation": span.correlation}
        if streams:
            args |= {"stream": span.stream}
        if not comm:
            args |= {"grid": [len(span.name), 1, 1], "block": [128, 1, 1]}
        name = "hidden_kernel_17" if comm and renamed else span.name
        events.append(
            {"ph": "X", "cat": "kernel", "name": name, "pid": span.rank, "tid": span.stream if streams else 0,
             "ts": round(span.start, 3), "dur": round(span.duration, 3), "args": args}
        )  # fmt: skip
        if launches:
            events += _launch(span, comm)
    for step_rank, at, begin, length in made.steps if named else ():
        if rank is None or step_rank == rank:
            events.append(
                {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{at}", "pid": 4000 + step_rank,
                 "tid": 1,
                 "ts": round(begin, 3), "dur": round(length, 3)}
            )  # fmt: skip
    head: dict[str, Any] = {"schemaVersion": 1, "deviceProperties": [{"id": 0}, {"id": 1}]}
    if rank is not None:
        head["distributedInfo"] = {"backend": "nccl", "rank": rank, "world_size": made.ranks}
    text = json.dumps({**head, "traceEvents": events, "traceName": "made"}, indent=1)
    return text.encode()


def _launch(span: Span, comm: bool) -> list[dict[str, Any]]:
    host = {"ph": "X", "pid": 4000 + span.rank, "tid": 4001}
    name = "c10d::allreduce_" if comm else "aten::linear"
    return [
        {**host, "cat": "cpu_op", "name": name, "ts": round(span.start - 9, 3), "dur": 0.008,
         "args": {"External id": span.correlation}},
        {**host, "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": round(span.start - 8.998, 3),
         "dur": 0.004, "args": {"correlation": span.correlation}},
    ]  # fmt: skip


def nsight(made: Made, path: Path, *, renamed: bool = False) -> None:
    """As `nsys export --type sqlite` writes it."""
    with sqlite3.connect(path) as base:
        base.execute("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)")
        base.execute(
            "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, deviceId INT, contextId INT,"
            " streamId INT, correlationId INT, globalPid INT, demangledName INT, shortName INT,"
            " gridX INT, gridY INT, gridZ INT, blockX INT, blockY INT, blockZ INT)"
        )
        names: dict[str, int] = {}

        def row(span: Span) -> tuple[Any, ...]:
            comm = span.stream == COMM
            name = names.setdefault("hidden_kernel_17" if comm and renamed else span.name, len(names) + 1)
            begin = round(span.start * 1000)
            return (begin, begin + round(span.duration * 1000), span.rank, 1, span.stream, span.correlation,
                    span.rank << 24, name, name, len(span.name), 1, 1, 128, 1, 1)  # fmt: skip

        base.executemany(
            f"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ({','.join('?' * 15)})", map(row, made.spans)
        )
        base.execute(
            "CREATE TABLE NVTX_EVENTS"
            " (start INT, end INT, eventType INT, text TEXT, globalTid INT, textId INT)"
        )
        base.executemany(
            "INSERT INTO NVTX_EVENTS VALUES (?, ?, 59, ?, ?, NULL)",
            [(round(begin * 1000), round((begin + length) * 1000), f"step {step}", rank << 24 | 1)
             for rank, step, begin, length in made.steps],
        )  # fmt: skip
        base.executemany(
            "INSERT INTO StringIds VALUES (?, ?)", [(number, name) for name, number in names.items()]
        )
    base.close()


def write_gzip(data: bytes, path: Path) -> None:
    """A compressed file."""
    path.write_bytes(gzip.compress(data, compresslevel=1))


if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes(kineto(make(Recipe(ranks=2, slowdown=1.15)), launches=True))
