"""`elbowroom trace overlap`: how fast traces are read, from the file to tables of instances, and in how much
memory.

python benchmarks/trace_reading.py [--mb 400] [--pipe 20GB] [--otf2-events 5000000] [--other-events 2000000]
                                  [--json]

Generated traces in Kineto's JSON (benchmarks/generated_trace.py), plain and gz, on one core; eight files of
50 MB on two; a trace of --pipe bytes through a pipe; where libotf2 is, an OTF2 archive that otf2_archive.c
makes; and files of other formats with --other-events kernels or states, and with a quarter of them. MB are
those of uncompressed JSON. Exit code 1 if a bar is missed: plain 200 MB/s, gz 120 MB/s, eight ranks 10 s,
OTF2 5e6 events/s; 300 MB of memory to read and 600 MB in all, at any size and in any format.
"""

from __future__ import annotations

import gzip
import json
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
from command import Command, status
from generated_trace import blocks

ROOT = Path(__file__).parents[1]
sys.path += [str(ROOT / "src"), str(ROOT / "tests")]

from elbowroom.quantities import parse_size  # noqa: E402
from made_overlap import COMM, COMPUTE, Made, Span, nsight  # noqa: E402


class Bar(msgspec.Struct, frozen=True):
    """What is measured, in which unit, and what it must reach: at least, or at most."""

    name: str
    unit: str
    bound: float
    least: bool

    def reached(self, value: float) -> bool:
        """Whether a value does."""
        return value >= self.bound if self.least else value <= self.bound


BARS = (
    Bar("plain JSON", "MB/s", 200, True),
    Bar("gz", "MB/s", 120, True),
    Bar("memory to read", "MB", 300, False),
    Bar("memory in all", "MB", 600, False),
    Bar("8 ranks of 50 MB on two cores", "s", 10, False),
    Bar("OTF2", "events/s", 5e6, True),
    Bar("memory in all, pipe", "MB", 600, False),
    Bar("memory to read, other formats", "MB", 300, False),
)
RANKS = 8


def write(path: Path, size: int, rank: int = 0, ranks: int = 1) -> int:
    """Writes a trace, plain or gz as its name ends; the bytes of JSON."""
    written = 0
    with gzip.open(path, "wb", compresslevel=6) if path.suffix == ".gz" else open(path, "wb") as file:
        for block in blocks(size, rank, ranks):
            written += file.write(block)
    return written


AFTER_TABLES = (
    "_measured", "_answer", "_document", "most_of", "skew_of", "computation_classes", "communication_kinds",
    "settings_of", "median_step_of",
)  # fmt: skip
"""What trace.overlap.analysis does with the tables of instances."""


def read_only(files: Sequence[str]) -> dict[str, float]:
    """In this process: from files to tables of instances, and the peaks of memory of it and its programs.
    What is done with the tables takes no part of the time; `all_s` has it, but for the estimate.
    """
    from elbowroom.trace.overlap import analysis
    from elbowroom.verbs.trace_overlap import ReportOverlap

    afterwards = 0.0

    def timed(function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*words: Any, **options: Any) -> Any:
            nonlocal afterwards
            begun = time.perf_counter()
            try:
                return function(*words, **options)
            finally:
                afterwards += time.perf_counter() - begun

        return run

    def tables(events: Any, exposure: Any, places: Any, kernel: Any, *_: Any) -> Any:
        analysis.instances_of(events, exposure, places, kernel)
        return not_compared()

    not_compared = analysis._not_compared
    analysis._compared = analysis._not_compared = tables
    for name in AFTER_TABLES:
        setattr(analysis, name, timed(getattr(analysis, name)))
    begun = time.perf_counter()
    ReportOverlap(files=files).do()
    seconds = time.perf_counter() - begun
    return {"s": seconds - afterwards, "all_s": seconds} | memory()


def whole(files: Sequence[str]) -> dict[str, float]:
    """In this process: all of `trace overlap`."""
    from elbowroom import api

    begun = time.perf_counter()
    found = api.trace_overlap(files)
    return {"s": time.perf_counter() - begun, "events": found.events} | memory()


def memory() -> dict[str, float]:
    """Peaks so far of this process, and of the largest one that it started, MB; the CPU time of all, s."""
    own, started = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    cpu = sum(one.ru_utime + one.ru_stime for one in (own, started))
    return {"own_mb": own.ru_maxrss / 1e3, "program_mb": started.ru_maxrss / 1e3, "cpu_s": cpu}


def apart(
    what: Callable[..., Any], files: Sequence[str | Path], cores: int, feed: int = 0
) -> dict[str, float]:
    """`what` in a process of its own, on so many cores; its standard input is a generated trace of `feed`
    bytes.
    """
    here = sorted(os.sched_getaffinity(0))[:cores]
    words = [sys.executable, __file__, "--inside", what.__name__, *map(str, files)]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{os.environ.get('PYTHONPATH', '')}"}
    source = None
    if feed:
        writer = subprocess.Popen(
            [sys.executable, str(ROOT / "benchmarks" / "generated_trace.py"), str(feed)],
            stdout=subprocess.PIPE,
        )
        source = writer.stdout
    done = subprocess.run(
        words, stdin=source, stdout=subprocess.PIPE, check=True, env=environment,
        preexec_fn=lambda: os.sched_setaffinity(0, here),
    )  # fmt: skip
    if feed:
        assert source is not None
        source.close()
        writer.wait()
    result: dict[str, float] = json.loads(done.stdout)
    return result


def of_json(folder: Path, size: int) -> dict[str, float]:
    """Speeds and memory of one trace and of eight."""
    plain, packed = folder / "trace.json", folder / "trace.json.gz"
    bytes_ = write(plain, size)
    write(packed, size)
    values = {}
    reading = apart(read_only, [plain], 1)
    values["plain JSON"] = bytes_ / 1e6 / reading["s"]
    values["gz"] = bytes_ / 1e6 / apart(read_only, [packed], 1)["s"]
    values["cpu"] = bytes_ / 1e6 / reading["cpu_s"]
    values["memory to read"] = max(reading["own_mb"], reading["program_mb"])
    every = apart(whole, [plain], 1)
    values["memory in all"] = every["own_mb"] + every["program_mb"]
    plain.unlink(), packed.unlink()
    ranks = [folder / f"rank-{rank}.json" for rank in range(RANKS)]
    for rank, path in enumerate(ranks):
        write(path, size // RANKS, rank, RANKS)
    values["8 ranks of 50 MB on two cores"] = apart(read_only, ranks, 2)["s"]
    return values


def of_pipe(size: int) -> tuple[float, float]:
    """Memory, MB, and time, s, of all of `trace overlap` on a trace of so many bytes that comes by a pipe."""
    found = apart(whole, ["-"], 2, feed=size)
    return found["own_mb"] + found["program_mb"], found["s"]


def of_otf2(folder: Path, count: int) -> float | None:
    """Events/s of an archive with about so many; None where libotf2 or a compiler is missing."""
    from otf2_archive import write_archive

    archive = write_archive(folder / "archive", count)
    return None if archive is None else count / apart(read_only, [archive], 1)["s"]


PAJE_EVENTS = {
    "DefineContainerType": "Alias Type Name",
    "DefineStateType": "Alias Type Name",
    "CreateContainer": "Time Alias Type Container Name",
    "PushState": "Time Type Container Value",
    "PopState": "Time Type Container",
}
"""Their numbers in a file are their places here."""


def write_paje(spans: Iterable[Span], path: Path) -> None:
    """A rank's computations and messages as states of two threads."""
    lines = []
    for number, (name, fields) in enumerate(PAJE_EVENTS.items()):
        lines += [f"%EventDef Paje{name} {number}", *(f"% {one} string" for one in fields.split())]
        lines.append("%EndEventDef")
    lines += ["0 R 0 Program", "0 T R Thread", "1 S T State", "2 0 r R 0 rank-0"]
    lines += [f"2 0 t{stream} T r thread-{stream}" for stream in (COMPUTE, COMM)]
    with open(path, "w", encoding="ascii") as file:
        file.writelines(f"{line}\n" for line in lines)
        for one in spans:
            name = "MPI_Allreduce" if one.stream == COMM else one.name
            end = one.start + one.duration
            file.write(f"3 {one.start / 1e6:.9f} S t{one.stream} {name}\n4 {end / 1e6:.9f} S t{one.stream}\n")


def write_rocprof(spans: Iterable[Span], path: Path) -> None:
    """Kernels as rocprofv3 writes them; their names behind them."""
    names: dict[str, int] = {}

    def kernel(one: Span) -> str:
        number = names.setdefault(one.name, len(names) + 1)
        return json.dumps(
            {"start_timestamp": round(1000 * one.start),
             "end_timestamp": round(1000 * (one.start + one.duration)),
             "kind": 11, "operation": 2, "thread_id": 3,
             "correlation_id": {"internal": one.correlation + 1, "external": 0},
             "dispatch_info": {"agent_id": {"handle": 100}, "queue_id": {"handle": one.stream},
                               "kernel_id": number, "grid_size": {"x": 512, "y": 1, "z": 1},
                               "workgroup_size": {"x": 256, "y": 1, "z": 1}}}
        )  # fmt: skip

    agents = [{"id": {"handle": 1}, "type": 1}, {"id": {"handle": 100}, "type": 2, "gpu_index": 0}]
    with open(path, "w", encoding="ascii") as file:
        file.write(f'{{"rocprofiler-sdk-tool": [{{"metadata": {{"pid": 7}}, "agents": {json.dumps(agents)}, ')
        file.write('"buffer_records": {"kernel_dispatch": [')
        for at, one in enumerate(spans):
            file.write(", " * (at > 0) + kernel(one))
        symbols = [{"kernel_id": number, "formatted_kernel_name": name} for name, number in names.items()]
        file.write(f']}}, "kernel_symbols": {json.dumps(symbols)}}}]}}')


def write_parquetdir(spans: Iterable[Span], path: Path) -> None:
    """The tables of the SQLite export, a file each."""
    from pyarrow import Table, parquet

    path.mkdir()
    base = path.with_suffix(".sqlite")
    nsight(Made(spans=list(spans)), base)
    with closing(sqlite3.connect(base)) as tables:
        for (name,) in tables.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            rows = tables.execute(f"SELECT * FROM {name}")
            names = [one[0] for one in rows.description]
            writer = None
            while block := rows.fetchmany(1 << 16):
                columns = dict(zip(names, map(list, zip(*block, strict=True)), strict=True))
                table = Table.from_pydict(columns)
                writer = writer or parquet.ParquetWriter(path / f"{name}.parquet", table.schema)
                writer.write_table(table)
            if writer is not None:
                writer.close()
    base.unlink()


WRITERS: dict[str, Callable[[Iterable[Span], Path], None]] = {
    "nsight.sqlite": lambda spans, path: nsight(Made(spans=list(spans)), path),
    "nsight-parquetdir": write_parquetdir,
    "rocprof.json": write_rocprof,
    "paje.trace": write_paje,
}
"""Formats that are read in the process that analyses them."""


def _span(number: int) -> Span:
    """Kernels one after the other; beside each fourth a collective."""
    comm = number % 5 == 4
    name, stream = ("ncclDevKernel_AllReduce", COMM) if comm else ("gemm", COMPUTE)
    start = 10.0 * (number - comm)
    return Span(rank=0, stream=stream, name=name, start=start, duration=9.0, correlation=number)


def of_others(folder: Path, count: int) -> dict[str, list[float]]:
    """Memory to read a file of each format, MB, with a quarter of `count` events, and with all."""
    values = {}
    for name, write_file in WRITERS.items():
        peaks = []
        for events in (count // 4, count):
            path = folder / f"{events}-{name}"
            write_file(map(_span, range(events)), path)
            peaks.append(apart(read_only, [path], 1)["own_mb"])
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        values[name] = peaks
    return values


def main() -> int:
    """Runs all, and says which bars are missed."""
    parser = Command(__doc__, smoke="--mb 2 --pipe 2MB --otf2-events 4000 --other-events 2000")
    parser.add_argument("--mb", type=int, default=400, help="MB of JSON, of one trace and of eight ranks")
    parser.add_argument("--pipe", type=parse_size, default="2GB", help="bytes of JSON through a pipe")
    parser.add_argument("--otf2-events", type=int, default=5_000_000)
    parser.add_argument("--other-events", type=int, default=2_000_000, help="in a file of each other format")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--inside", nargs="+")
    asked = parser.parse_args()
    if asked.inside:
        run = {one.__name__: one for one in (read_only, whole)}[asked.inside[0]]
        print(json.dumps(run(asked.inside[1:])))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        values = of_json(Path(folder), asked.mb * 1_000_000)
        values["memory in all, pipe"], seconds = of_pipe(asked.pipe)
        otf2 = of_otf2(Path(folder), asked.otf2_events)
        others = of_others(Path(folder), asked.other_events)
    if otf2 is not None:
        values["OTF2"] = otf2
    values["memory to read, other formats"] = max(max(peaks) for peaks in others.values())
    missed = [bar for bar in BARS if bar.name not in values or not bar.reached(values[bar.name])]
    if asked.json:
        print(
            json.dumps(
                {
                    "values": values,
                    "pipe_s": seconds,
                    "others": others,
                    "missed": [bar.name for bar in missed],
                }
            )
        )
    else:
        load, speed = os.getloadavg()[0], values["cpu"]
        print(f"load {load:.1f}; {asked.mb} MB of JSON, plain: {speed:.0f} MB for each s of CPU time")
        print(f"all of trace overlap on a pipe of {asked.pipe / 1e9:g} GB: {seconds:.0f} s")
        for bar in BARS:
            value = f"{values[bar.name]:12,.0f}" if bar.name in values else "         n/a"
            bound = f"{'at least' if bar.least else 'at most'} {bar.bound:,.0f} {bar.unit}"
            print(f"{bar.name:32}{value} {bar.unit:9} {bound:26}{'missed' if bar in missed else ''}")
        for name, (few, many) in others.items():
            sizes = f"{asked.other_events // 4:,} and {asked.other_events:,} events"
            print(f"{name:32}{few:12,.0f} and {many:,.0f} MB of memory to read {sizes}")
    return status(asked, missed)


if __name__ == "__main__":
    sys.exit(main())
