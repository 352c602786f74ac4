"""The script for Slurm: shellcheck reads it, and stand-ins for sbatch and srun run it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from elbowroom.errors import UsageError
from elbowroom.schedule.jobs import Cluster, Jobs, ScheduledJob
from elbowroom.schedule.plan import schedule
from elbowroom.schedule.slurm import slurm_script
from schedule_fixture import job, published_half, published_matrix

SBATCH = """#!/bin/bash
echo "sbatch $*" >> "$LOG"
words=("$@")
while [[ $1 == --* ]]; do shift; done
bash "$@" && echo "${#words[@]}"
"""
SRUN = """#!/bin/bash
echo "srun $*" >> "$LOG"
while [[ $1 == --* ]]; do shift; done
"$@"
"""
JOBS = (
    job("wide", "CG", nodes=2, command="true wide", memory=20 << 30),
    job("b", "EP", nodes=1, hours=0.7, command="true 'b c'"),
    job("c", "EP", nodes=1, hours=0.7, command="true c"),
    job("later", "IS", nodes=1, command="true later", after=("wide",), share=False, cores="all"),
    job("long", "FT", nodes=1, hours=2.25, command="true long", share=("second", "third")),
    job("second", "LU", nodes=1, command="true second", share=("long",)),
    job("third", "LU", nodes=1, command="true third", share=("long",)),
)


def script(*jobs: ScheduledJob) -> str:
    listed = Jobs(cluster=Cluster(nodes=8, cores=16), jobs=jobs)
    return slurm_script(schedule(listed, published_matrix(), half=published_half()), listed)


def submitted(text: str, folder: Path) -> list[str]:
    """What the script calls, where every job is submitted and runs at once."""
    for name, body in (("sbatch", SBATCH), ("srun", SRUN)):
        (folder / name).write_text(body)
        (folder / name).chmod(0o755)
    (folder / "jobs.sh").write_text(text)
    environment = os.environ | {"PATH": f"{folder}:{os.environ['PATH']}", "LOG": str(folder / "log")}
    subprocess.run(["bash", str(folder / "jobs.sh")], check=True, env=environment, capture_output=True)
    return (folder / "log").read_text().splitlines()


def test_every_job_runs_once(tmp_path: Path) -> None:
    lines = submitted(script(*JOBS), tmp_path)
    steps = sorted(line.partition(" true ")[2] for line in lines if line.startswith("srun"))
    assert steps == sorted(["wide", "b c", "c", "later", "long", "second", "third"])


def test_jobs_that_share_are_steps_of_one_allocation_on_half_of_the_cores(tmp_path: Path) -> None:
    lines = submitted(script(*JOBS), tmp_path)
    wide, b, c = (next(line for line in lines if line.endswith(name)) for name in ("wide", "b c", "true c"))
    assert "--nodes=4 --ntasks=32 --ntasks-per-node=8 " in wide
    assert "--mem=10240M " in wide
    assert "--nodes=2 --ntasks=16 --ntasks-per-node=8 " in b
    assert sorted("--relative=2" in line for line in (b, c)) == [False, True]
    allocations = [line for line in lines if line.startswith("sbatch")]
    assert len(allocations) == 3
    assert all("--exclusive" in line and "--time=" in line for line in allocations)


def test_a_job_is_submitted_behind_those_it_waits_for(tmp_path: Path) -> None:
    lines = submitted(script(*JOBS), tmp_path)
    later = next(line for line in lines if "--dependency=afterok:" in line)
    assert lines.index(later) > next(i for i, line in enumerate(lines) if line.endswith("true wide"))


def test_a_failed_job_fails_its_allocation(tmp_path: Path) -> None:
    text = script(job("a", "CG", command="false a"), job("b", "EP", hours=0.75, command="true b"))
    assert "wait_for_all" in text
    with pytest.raises(subprocess.CalledProcessError):
        submitted(text, tmp_path)


def test_ranks_are_those_of_the_job(tmp_path: Path) -> None:
    (line,) = [
        line
        for line in submitted(script(job("a", "EP", ranks=9, command="true a")), tmp_path)
        if line.startswith("srun")
    ]
    assert "--nodes=1 --ntasks=9 --ntasks-per-node=16 " in line


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="shellcheck is not installed")
def test_shellcheck_finds_nothing(tmp_path: Path) -> None:
    file = tmp_path / "jobs.sh"
    file.write_text(script(*JOBS))
    done = subprocess.run(["shellcheck", str(file)], capture_output=True, text=True)
    assert done.stdout == ""


def test_a_job_without_a_command_is_named() -> None:
    with pytest.raises(UsageError, match=r"jobs\.command 'a': has no command"):
        script(job("a", "EP"))


def test_names_are_no_shell(tmp_path: Path) -> None:
    lines = submitted(script(job('$(touch gone) `x` "q"', "EP", command="true a")), tmp_path)
    assert len(lines) == 2
