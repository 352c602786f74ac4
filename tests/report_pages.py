"""Pages made up for tests of the report: numbers are invented, shapes are those of the paper's machines."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping

import msgspec

from elbowroom.advise.advisor import advise
from elbowroom.advise.contention_map import contention_maps
from elbowroom.advise.job import of_data
from elbowroom.advise.map_figures import figures
from elbowroom.draw.figure import Axis, Figure, Mark, Series
from elbowroom.machine.topology import Cache, Core, Machine, Nic, NumaNode
from elbowroom.models.document import Document
from elbowroom.models.figures import panels
from elbowroom.models.flow import law as flow
from elbowroom.models.flow.part import FlowPart
from elbowroom.models.message_size import MessageSize
from elbowroom.models.predict import predict, situations
from elbowroom.models.published import of_published
from elbowroom.models.registry import fitted_models
from elbowroom.points.point import Note
from elbowroom.report.columns import CoreUse
from elbowroom.report.page import Page
from elbowroom.report.sections import JobSection, ModelSection
from elbowroom.results.quiet import Drift
from elbowroom.results.result import Finding, PointResult, Verdict
from elbowroom.stats.interval import Kept, Side, Summary

SIZES = (4, 1024, 65536, 2**20, 64 * 10**6)


def henri() -> Machine:
    """Two packages, four NUMA nodes of nine cores with two processing units each, one network card on node
    0.
    """
    cores = tuple(Core(number=i, logical=i, package=i // 18, node=i // 9, pus=(i, i + 36)) for i in range(36))
    own = tuple(
        cache
        for i in range(36)
        for cache in (Cache(level=1, size=32768, cores=(i,)), Cache(level=2, size=2**20, cores=(i,)))
    )
    shared = tuple(Cache(level=3, size=25952256, cores=tuple(range(18 * p, 18 * p + 18))) for p in range(2))
    return Machine(
        name="henri0",
        model="Intel Xeon Gold 6140 @ 2.30 GHz",
        cores=cores,
        nodes=tuple(
            NumaNode(number=i, package=i // 2, memory=24 * 2**30, cores=tuple(range(9 * i, 9 * i + 9)))
            for i in range(4)
        ),
        caches=own + shared,
        nics=(
            Nic(name="mlx5_0", kind="InfiniBand", node=0, pci="0000:3b:00.0", link="100 Gb/s, PCIe 3.0 x16"),
        ),
        allowed=tuple(range(36)),
        memory=96 * 2**30,
        hosts=2,
    )


def small() -> Machine:
    """A virtual machine of two cores and no network card; its name needs escaping."""
    return Machine(
        name='<vm & "two">',
        model="virtual CPU",
        cores=tuple(Core(number=i, logical=i, package=0, node=0, pus=(i,)) for i in range(2)),
        nodes=(NumaNode(number=0, package=0, memory=16 * 2**30, cores=(0, 1)),),
        caches=(
            Cache(level=2, size=2**20, cores=(0,)),
            Cache(level=2, size=2**20, cores=(1,)),
            Cache(level=3, size=33 * 2**20, cores=(0, 1)),
        ),
        nics=(),
        allowed=(0, 1),
        memory=16 * 2**30,
    )


def summary(median: float, spread: float, unit: str) -> Summary:
    """A summary of 20 samples around `median` with relative `spread`."""
    return Summary(
        median=median,
        d1=median * (1 - spread),
        d9=median * (1 + spread),
        low=median * (1 - spread / 3),
        high=median * (1 + spread / 3),
        count=20,
        unit=unit,
    )


def side(alone: float, ratio: float, spread: float, unit: str) -> Side:
    """Both states of one side; `ratio` is together/alone of the number itself, so a latency keeps its
    inverse.
    """
    kept = 1 / ratio if unit == "us" else ratio
    return Side(
        alone=summary(alone, spread, unit),
        together=summary(alone * ratio, spread * 2, unit),
        kept=Kept(value=kept, low=kept * (1 - spread / 2), high=kept * (1 + spread / 2)),
    )


def points(count: int, machine: Machine, seed: int = 1) -> Iterator[tuple[PointResult, CoreUse]]:
    """`count` different points with the cores they use."""
    random_ = random.Random(seed)
    most = len(machine.cores) - 1
    kernels = ("triad", "triad-nt", "copy", "prime", "memset-nt", "load", "fma-avx512")
    for index in range(count):
        n = index % most + 1
        size = SIZES[index // most % len(SIZES)]
        kernel = kernels[index // most // len(SIZES) % len(kernels)]
        variety = index // most // len(SIZES) // len(kernels)
        comm_node = variety % len(machine.nodes)
        metric = "latency" if size < 4096 else "bandwidth"
        pressed = 1 if kernel.startswith(("prime", "fma")) else 1 / (1 + 0.05 * n)
        noise = random_.uniform(0.005, 0.02)
        if metric == "latency":
            comm = side(1.6 * random_.gauss(1, 0.01), 1 / pressed if n > 22 else 1.0, noise, "us")
        else:
            comm = side(10200 * random_.gauss(1, 0.01), pressed * random_.gauss(1, 0.01), noise, "MB/s")
        comp = side(
            80000 * (1 - 0.87**n),
            (0.9 if pressed < 1 and metric == "bandwidth" else 1.0) * random_.gauss(1, 0.004),
            noise,
            "MB/s",
        )
        flags = ("migrated",) if index % 97 == 13 else ("wrong_node", "steal") if index % 211 == 5 else ()
        failed = index % 501 == 7
        yield (
            PointResult(
                id=f"{kernel}-n{n}-{size}B-pingpong-{metric}-comp0-comm{comm_node}-core{most}-{variety}",
                plan="cores",
                kernel=kernel,
                n=n,
                size=size,
                comp_node=0,
                comm_node=comm_node,
                comm_core=most,
                metric=metric,
                status="failed" if failed else "not_stable" if index % 301 == 11 else "ok",
                reason="rank 1 died (signal 9)" if failed else "",
                flags=flags,
                comp=Side() if failed else comp,
                comm=Side() if failed else comm,
                cursor=variety + 1,
            ),
            CoreUse(comp_cores=tuple(range(n)), comm_cores=(most,)),
        )


def sweep(name: str, results: list[PointResult]) -> Figure:
    """Communication above, computation below, over the number of computing cores."""
    measured = [r for r in results if r.comm.alone]

    def series(title: str, which: str, state: str) -> Series:
        chosen = [getattr(getattr(r, which), state) for r in measured]
        return Series(
            name=f"{title} {state}",
            side="computation" if which == "comp" else "communication",
            style="alone" if state == "alone" else "together",
            x=tuple(float(r.n) for r in measured),
            y=tuple(s.median for s in chosen),
            low=tuple(s.d1 for s in chosen),
            high=tuple(s.d9 for s in chosen),
            axis="below" if which == "comp" else "left",
            points=tuple(r.id for r in measured),
        )

    first = results[0]
    words = "network latency" if first.metric == "latency" else "network bandwidth"
    unit = "µs" if first.metric == "latency" else "MB/s"
    kernel = first.kernel.upper()
    return Figure(
        name=name,
        title=f"{words} beside {kernel}, messages of {first.size} B",
        x=Axis(label="computing cores"),
        left=Axis(label=f"{words} ({unit})"),
        below=Axis(label=f"{kernel} bandwidth (MB/s)"),
        series=(
            series(words, "comm", "alone"),
            series(words, "comm", "together"),
            series(kernel, "comp", "alone"),
            series(kernel, "comp", "together"),
        ),
        marks=(
            Mark(x=3.0, text=f"{words} suffers from 3 computing cores on, steadily: kept 0.87 [0.86, 0.88]"),
        ),
        caption="Data near the network card, communication thread on the last core.",
    )


def manifest() -> dict[str, object]:
    """A manifest as run folders keep it, in part."""
    return {
        "schema": "elbowroom/manifest",
        "version": 1,
        "elbowroom": "0.1.0",
        "created": "2026-03-04T10:20:30Z",
        "finished": "2026-03-04T10:58:02Z",
        "command": ["elbowroom", "run", "cores", "--set", 'note=<b>&"quoted"</b></script>'],
        "plan": {"name": "cores", "repeat": 20, "window": 0.12, "sequence": ["A", "B", "AB", "AB", "B", "A"]},
        "seed": 20212021,
        "launcher": "srun",
        "hello": {
            "version": "0.1.0",
            "mpi": {
                "library": "Open MPI v5.0.11",
                "standard": "3.1",
                "thread_level": "multiple",
                "transport": "verbs",
            },
            "clock": {"source": "tsc", "resolution_ns": 1, "call_ns": 18.2},
            "hwloc": {"version": "2.9.0"},
        },
        "unknown": {"uncore_frequency": "the msr device is not readable by this user"},
    }


def page(count: int = 350, machine: Machine | None = None, *, trusted: bool = True) -> Page:
    """A page of `count` points, with a figure for each sweep over n."""
    machine = machine or henri()
    made = list(points(count, machine))
    results = [result for result, _ in made]
    uses = {result.id: use for result, use in made}
    step = len(machine.cores) - 1
    figures = (
        tuple(sweep(f"sweep-{i // step}", results[i : i + step]) for i in range(0, len(results), step))
        if step > 1
        else ()
    )
    return Page(
        title='cores on henri: <b>bold</b> & "quoted"',
        manifest=manifest(),
        machine=machine,
        verdict=Verdict(
            trusted=trusted,
            text="Computation and communication slow each other down on this machine."
            if trusted
            else "The machine was not quiet enough to tell whether there is interference.",
            reasons=(
                "The register-only kernel kept 0.99 [0.98, 1.00] beside communication: the machine was "
                "quiet.",
            )
            if trusted
            else (
                "The register-only kernel kept only 0.81 [0.74, 0.88]: other work took the cores.",
                "The load before the run was 3.4 on 2 cores.",
            ),
            interference=True if trusted else None,
            grade="yes" if trusted else "cannot say",
            findings=(
                Finding(
                    key="bandwidth",
                    level="interference",
                    text="Network bandwidth suffers from 3 computing cores on, steadily.",
                    values={"kept": 0.36, "low": 0.35, "high": 0.37, "from_n": 3, "size": 64 * 10**6},
                    points=tuple(r.id for r in results[-step:]),
                ),
                Finding(
                    key="latency",
                    level="quiet",
                    text="Latency of 4 B messages is unchanged below 22 computing cores.",
                    values={"kept": 0.997, "low": 0.994, "high": 1.001},
                ),
                Finding(
                    key="prime",
                    level="note",
                    text="Prime counting <register-only> is undisturbed.",
                    values={"kept": 1.0, "low": 0.99, "high": 1.01},
                ),
            ),
        ),
        results=tuple(results),
        state={
            "before": {
                "load": 0.02,
                "governor": "performance",
                "turbo": True,
                "steal": {"status": "n/a", "reason": "no hypervisor"},
            },
            "after": {"load": 18.4, "governor": "performance", "turbo": True},
        },
        observers={
            "counters": {"status": "n/a", "reason": "perf_event_paranoid is 4: needs at most 2"},
            "frequency": {"status": "ok"},
        },
        figures=figures,
        notes=(Note(what="placement near/far", reason="the machine has one NUMA node with a network card"),),
        uses=uses,
        drifts=tuple(
            Drift(
                point=result.id,
                side="computation",
                alone=result.comp.alone,
                closing=result.comp.alone.median * (0.98 + 0.01 * index),
            )
            for index, result in enumerate(results[:3])
            if result.comp.alone
        ),
    )


def flow_part(seed: int, draws: int = 8) -> FlowPart:
    """A FLOW of made-up parameters, each drawn from a range that keeps every stream and resource in play;
    every third seed makes messages of weight 0, which get what is left.
    """
    random_ = random.Random(seed)
    ranges = {"MB/s": (3e3, 9e4), "cores": (0.0, 4.0), "1": (0.0, 0.5)}
    special = {"core": (3e3, 9e3), "comm": (8e3, 13e3), "cost": (0.5, 2.0), "floor": (0.05, 0.9)}

    if seed % 3 == 0:
        special["weight"] = (0.0, 0.0)

    def draw() -> tuple[float, ...]:
        return tuple(
            random_.uniform(*special.get(meaning.name.split("_")[0], ranges.get(meaning.unit, (0.1, 1.0))))
            for meaning in flow.PARAMETERS
        )

    values = draw()
    return FlowPart(
        names=flow.NAMES,
        values=values,
        low=tuple(value * 0.9 for value in values),
        high=tuple(value * 1.1 for value in values),
        draws=tuple(tuple(value * random_.gauss(1, 0.02) for value in values) for _ in range(draws)),
        discrepancy=(0.01, 0.005, 0.02, 0.03),
    )


def document(name: str = "henri", *, seed: int = 1, law: bool = True, virtual: bool = False) -> Document:
    """A published machine's document with a FLOW and a law of message sizes that are made up."""
    found = of_published(name)
    sizes = MessageSize(t0=2.5, low=2.4, high=2.6, sizes=(4, 65536, 64_000_000), misfit=0.01)
    return msgspec.structs.replace(
        found,
        machine=msgspec.structs.replace(found.machine, virtual=virtual),
        models=msgspec.structs.replace(found.models, flow=flow_part(seed)),
        message_size=sizes if law else None,
    )


def modelled(document: Document, name: str = "M.json") -> ModelSection:
    """The document as the page shows it: with its lines in every placement, nothing measured."""
    shown = fitted_models(document)[0]
    lines = predict(document, situations(document.machine), name=shown)
    return ModelSection(
        name=name,
        document=document,
        shown=shown,
        figures=panels(document.machine, lines, calibrated=[(0, 0)]),
    )


def jobbed(job: Mapping[str, object], *, seed: int = 1) -> JobSection:
    """A job (as its file gives it) on henri with a FLOW that is made up, as the page shows it."""
    made = document(seed=seed)
    advice = advise(made, of_data(job), model="M.json")
    maps = contention_maps(made, advice)
    return JobSection(model="M.json", advice=advice, maps=maps, figures=figures(maps, made.machine))
