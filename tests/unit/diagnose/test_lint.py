"""What is wrong with a launch line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from elbowroom.diagnose.lint import LaunchPlace, LintReport, lint
from elbowroom.launch.cgroup import cpu_quota
from elbowroom.launch.launch_options import read_line
from elbowroom.launch.mpi import Mpi
from launch_lines import MPICH, OPENMPI, machine


def linted(
    text: str,
    mpi: Mpi | None = OPENMPI,
    env: Mapping[str, str] | None = None,
    quota: float | None = None,
    *,
    openmp: bool = False,
) -> LintReport:
    place = LaunchPlace(machine=machine(), env=env or {}, quota=quota, openmp=openmp)
    return lint(read_line(text.split(), mpi), place)


@pytest.mark.parametrize(
    ("text", "mpi", "env", "rule", "line"),
    [
        ("mpirun -n 8 ./a", OPENMPI, {}, "too-many", "--mca mpi_yield_when_idle 1"),
        ("mpirun -n 8 ./a", OPENMPI, {}, "too-many", "--map-by :OVERSUBSCRIBE"),
        ("mpirun -n 8 --map-by ppr:8:node ./a", OPENMPI, {}, "too-many", "ppr:8:node:OVERSUBSCRIBE"),
        ("mpirun -n 8 --oversubscribe ./a", OPENMPI, {}, "too-many", "-n 8 --oversubscribe --bind-to none"),
        ("mpirun -n 2 -x OMP_NUM_THREADS=4 ./a", OPENMPI, {}, "too-many", "-x OMP_NUM_THREADS=2"),
        ("mpirun -n 2 ./a", OPENMPI, {"OMP_NUM_THREADS": "2"}, "threads-share-core", "--map-by slot:PE=2"),
        ("mpiexec -n 2 ./a", MPICH, {}, "unbound", "mpiexec -n 2 -bind-to core ./a"),
        ("mpirun -n 2 --bind-to none ./a", OPENMPI, {}, "unbound", "--bind-to core"),
        ("taskset -c 0 mpirun -n 2 ./a", OPENMPI, {}, "pinned", "mpirun -n 2 --bind-to core"),
        ("taskset 0x1 mpirun -n 2 ./a", OPENMPI, {}, "pinned", "mpirun -n 2 --bind-to core"),
        ("mpirun -n 2 --cpu-set 0 ./a", OPENMPI, {}, "pinned", "mpirun -n 2 --bind-to core"),
        (
            "mpirun -n 2 ./a",
            OPENMPI,
            {"OMP_PLACES": "sockets"},
            "threads-wider-than-ranks",
            "OMP_PLACES=cores",
        ),
        ("mpirun -n 2 ./a", OPENMPI, {"SLURM_CPUS_ON_NODE": "64"}, "allocation", ""),
        ("mpirun -n 4 ./a", OPENMPI, {"SLURM_NTASKS": "2"}, "allocation", ""),
        ("srun -n 2 ./a", None, {"OMP_NUM_THREADS": "2"}, "cpus-per-task", "srun -n 2 --cpus-per-task=2 ./a"),
    ],
)
def test_a_flaw_is_named_with_the_line_to_type(
    text: str, mpi: Mpi | None, env: Mapping[str, str], rule: str, line: str
) -> None:
    findings = {finding.rule: finding.line for finding in linted(text, mpi, env).findings}
    assert rule in findings
    assert line in findings[rule]  # type: ignore[index]


@pytest.mark.parametrize(
    ("text", "mpi", "env"),
    [
        ("mpirun -n 2 ./a", OPENMPI, {}),
        ("mpirun -n 4 ./a", OPENMPI, {}),
        ("mpirun -n 2 --bind-to core --map-by slot:PE=2 ./a", OPENMPI, {"OMP_NUM_THREADS": "2"}),
        ("mpiexec -n 4 -bind-to core ./a", MPICH, {}),
        ("srun -n 2 -c 2 ./a", None, {"OMP_NUM_THREADS": "2"}),
        ("mpirun -n 4 -H a:2,b:2 ./a", OPENMPI, {"OMP_NUM_THREADS": "1"}),
    ],
)
def test_a_good_line_has_no_finding(text: str, mpi: Mpi | None, env: Mapping[str, str]) -> None:
    assert linted(text, mpi, env).findings == ()


def test_threads_that_nobody_counts_are_named_for_programs_with_openmp_only() -> None:
    assert [one.rule for one in linted("mpirun -n 2 ./a", openmp=True).findings] == ["threads-unset"]
    assert linted("mpirun -n 2 ./a").findings == ()


def test_a_quota_below_the_threads_is_named() -> None:
    assert {one.rule for one in linted("mpirun -n 4 ./a", quota=1.5).findings} == {"too-many", "quota"}


def test_the_smallest_limit_of_a_cgroup_and_those_above_it_counts(tmp_path: Path) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("0::/job/step\n")
    folder = tmp_path / "sys/fs/cgroup/job/step"
    folder.mkdir(parents=True)
    (folder / "cpu.max").write_text("max 100000\n")
    (folder.parent / "cpu.max").write_text("150000 100000\n")
    assert cpu_quota(tmp_path) == 1.5
    assert cpu_quota(tmp_path / "nowhere") is None


@pytest.mark.parametrize(("space", "quota"), [("cgroup:[1]", 2.0), ("cgroup:[2]", None)])
def test_a_cgroup_that_the_own_sys_does_not_show_is_read_by_an_ancestor_of_its_namespace(
    tmp_path: Path, space: str, quota: float | None
) -> None:
    for process, parent, namespace in (("self", "7", "cgroup:[1]"), ("7", "1", space), ("1", "0", space)):
        (tmp_path / "proc" / process / "ns").mkdir(parents=True)
        (tmp_path / "proc" / process / "status").write_text(f"Name:\tx\nPPid:\t{parent}\nUid:\t0\n")
        (tmp_path / "proc" / process / "ns/cgroup").symlink_to(namespace)
    (tmp_path / "proc/self/cgroup").write_text("0::/job\n")
    folder = tmp_path / "proc/7/root/sys/fs/cgroup/job"
    folder.mkdir(parents=True)
    (folder / "cpu.max").write_text("200000 100000\n")
    assert cpu_quota(tmp_path) == quota
