"""The mini-kernels on real ranks: every message is right, and the bytes are those of their README's table."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from elbowroom.launch.mpi import Mpi, launch_environment
from traced import PATIENCE, minikernel, mpi_called

SIZE = 4096
STEPS = 2

DIRECTIONS = {3: 1, 4: 2}
"""With more than one rank, of MPI_Dims_create in three dimensions."""
PAIRS = {3: 2, 4: 4}
"""Of neighbours in the grid of MPI_Dims_create in two dimensions."""


@pytest.fixture(scope="module", params=("embedded", "mpich"))
def mpi(request: pytest.FixtureRequest) -> Mpi:
    return mpi_called(request.param)


@pytest.fixture(scope="module")
def program(mpi: Mpi) -> Path:
    return minikernel(mpi)


def run(mpi: Mpi, program: Path, ranks: int, *words: str) -> subprocess.CompletedProcess[str]:
    more = ["--oversubscribe"] if mpi.kind == "openmpi" else []
    return subprocess.run(
        [mpi.launcher, *more, "-n", str(ranks), str(program), *words],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env={**os.environ, **launch_environment()},
    )


def uneven(ranks: int) -> int:
    """Bytes of `is`: a half, all or one and a half of the size."""
    return sum(
        SIZE * (1 + (rank + to + step) % 3) // 2
        for step in range(STEPS)
        for rank in range(ranks)
        for to in range(ranks)
        if to != rank
    )


def expected(name: str, p: int) -> int:
    """Of the run, by the table."""
    d = DIRECTIONS[p]
    halos = sum(SIZE // 4**level for level in range(5))
    table = {
        "ep": 0,
        "cg": 25 * p * (SIZE + 16),
        "ft": p * (p - 1) * SIZE + 16 * p,
        "is": p * (p - 1) * 4,
        "mg": 2 * 2 * p * d * halos + 8 * p,
        "lu": 80 * SIZE * PAIRS[p] + 40 * p,
        "bt": 2 * p * d * SIZE,
        "sp": 8 * p * d * SIZE,
    }
    at_end = {"ep": 80 * p, "is": uneven(p)}
    return STEPS * table[name] + at_end.get(name, 0)


@pytest.mark.parametrize("name", ["ep", "cg", "ft", "is", "mg", "lu", "bt", "sp"])
def test_every_message_is_right_and_the_bytes_are_those_of_the_table(
    name: str, mpi: Mpi, program: Path
) -> None:
    ranks = 4 if name in ("cg", "ft", "mg", "bt") else 3
    words = ["--verify", "--steps", str(STEPS), "--size", str(SIZE), "--seconds-per-step", "0.001"]
    done = run(mpi, program, ranks, name, *words)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["kernel"], found["ranks"], found["steps"], found["verified"]) == (name, ranks, STEPS, True)
    assert found["bytes"] == expected(name, ranks)


def test_a_rank_alone_sends_nothing(mpi: Mpi, program: Path) -> None:
    found = json.loads(run(mpi, program, 1, "cg", "--steps", "1", "--seconds-per-step", "0").stdout)
    assert (found["bytes"], found["messages"], found["verified"]) == (0, 0, True)


def test_cg_refuses_an_odd_number_of_ranks(mpi: Mpi, program: Path) -> None:
    done = run(mpi, program, 3, "cg")
    assert done.returncode != 0
    assert "give 1 or an even number" in done.stdout + done.stderr
