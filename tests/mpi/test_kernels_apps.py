"""apps/kernels in both builds, against numpy: ranks of a real MPI on this machine. No test asserts a time."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from elbowroom.launch.mpi import Mpi
from task_programs import TaskProgram, program_of

Record = dict[str, Any]

CORES = sorted(os.sched_getaffinity(0))
SEED = 1
SMALL = {"cg": (48, 8), "cg-sparse": (96, 12), "gemm": (48, 8)}

pytestmark = pytest.mark.skipif(len(CORES) < 2, reason="needs two cores: one computes, one communicates")


class Program(TaskProgram):
    """A build of the kernels."""

    def __init__(self, name: str, mpi: Mpi) -> None:
        super().__init__("kernels", name, mpi)

    def run(self, ranks: int, *words: str, lines: str = "") -> tuple[int, list[Record]]:
        """Exit code and records of a whole conversation."""
        records: list[Record] = []
        # On a busy machine a launcher may end before it has handed on what its ranks said last: asked again.
        for _ in range(3):
            done = self.start(ranks, *words, lines=lines)
            records = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
            if records:
                break
            print(f"nothing was said; exit code {done.returncode}: {done.stderr[-2000:]}")
        return done.returncode, records

    def solve(self, ranks: int, task: str, result: Path) -> tuple[Record, np.ndarray]:
        """The record of a small solution or product, and the result itself."""
        order, block = SMALL[task]
        words = ("solve", "--task", task, "--order", str(order), "--block", str(block), "--json")
        code, (record,) = self.run(ranks, *words, "--result", str(result))
        assert code == 0, record
        return record, np.fromfile(result)


@pytest.fixture(scope="module")
def openmp() -> Program:
    return program_of(Program, "openmp")


@pytest.fixture(scope="module")
def starpu() -> Program:
    return program_of(Program, "starpu")


def uniform(seed: int, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """The numbers of apps/kernels/problem.hpp: splitmix64 of seed, row and column, in [-1, 1)."""
    golden = np.uint64(0x9E3779B97F4A7C15)
    with np.errstate(over="ignore"):
        z = np.uint64(seed) * golden + (rows.astype(np.uint64) << np.uint64(32)) + columns.astype(np.uint64)
        z = z + golden
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return (z >> np.uint64(11)).astype(float) * 2.0**-52 - 1


def expected(task: str) -> np.ndarray:
    """The result by numpy: a product, or the solution of the system whose right side numpy makes."""
    order, block = SMALL[task]
    rows, columns = np.indices((order, order))
    if task == "gemm":
        product: np.ndarray = uniform(SEED, rows, columns) @ uniform(SEED + 1, rows, columns)
        return product.ravel()
    matrix = dense(order) if task == "cg" else sparse(order, block)
    known = uniform(SEED + 2, np.arange(order), np.zeros(order))
    assert np.linalg.eigvalsh(matrix).min() > 0.5
    return np.linalg.solve(matrix, matrix @ known)


def dense(order: int) -> np.ndarray:
    rows, columns = np.indices((order, order))
    matrix: np.ndarray = uniform(SEED, np.minimum(rows, columns), np.maximum(rows, columns)) / (2 * order)
    np.fill_diagonal(matrix, 1 + 9 * (np.arange(order) + 0.5) / order)
    return matrix


def sparse(order: int, block: int) -> np.ndarray:
    width = max(size for size in range(1, int(block**0.5) + 1) if block % size == 0)
    index = np.arange(order)
    places = np.stack([index // block, index % block // width, index % width])
    near = (abs(places[:, :, None] - places[:, None, :]) <= 1).all(axis=0)
    matrix = -near.astype(float)
    np.fill_diagonal(matrix, 29 + uniform(SEED, index, index))
    return matrix


@pytest.mark.parametrize(("task", "several"), [("cg", (1, 3)), ("cg-sparse", (1, 3)), ("gemm", (1, 2))])
def test_results_are_numpys_on_any_number_of_ranks(
    openmp: Program, tmp_path: Path, task: str, several: tuple[int, ...]
) -> None:
    wanted = expected(task)
    for ranks in several:
        record, found = openmp.solve(ranks, task, tmp_path / "result")
        assert np.abs(found - wanted).max() <= 1e-8 * np.abs(wanted).max()
        assert record["valid"]
        assert (record["send_MB_s"] is None) == (ranks == 1)


@pytest.mark.parametrize("task", SMALL)
def test_starpu_and_openmp_agree_to_a_trillionth(
    openmp: Program, starpu: Program, tmp_path: Path, task: str
) -> None:
    one, by_openmp = openmp.solve(2, task, tmp_path / "openmp")
    other, by_starpu = starpu.solve(2, task, tmp_path / "starpu")
    assert np.linalg.norm(by_openmp - by_starpu) <= 1e-12 * np.linalg.norm(by_openmp)
    for counted in ("iterations", "flops", "bytes", "messages", "bytes_sent"):
        assert one["facts"][counted] == other["facts"][counted]


def settings(**changes: Any) -> Record:
    """As launch.programs.settings; both ranks compute on one core in turns."""
    program = {"name": "kernels", "task": "cg", "build": "openmp", "order": 48, "block": 8, "iterations": 99}
    there = {
        "program": program | {key: changes.pop(key) for key in list(changes) if key in (*program, "shift")},
        "comp_cores": [CORES[1]],
        "comm_cores": [CORES[0]],
        "comp_node": 0,
        "comm_node": 0,
        "scheduling": True,
    }
    return there | changes


def measure(program: Program, folder: Path, config: Record, *requests: Record) -> tuple[int, list[Record]]:
    path = folder / "config.json"
    path.write_text(json.dumps(config))
    lines = "".join(json.dumps(request) + "\n" for request in (*requests, {"op": "quit"}))
    return program.run(2, "measure", "--config", str(path), lines=lines)


def request(repetition: int) -> Record:
    phases = ["A", "B", "AB", "AB"]
    return {"op": "measure", "point": "p", "repetition": repetition, "sequence": phases, "window": 0.001}


def test_a_repetition_has_all_sides_of_all_phases_and_facts(openmp: Program, tmp_path: Path) -> None:
    code, (hello, answer) = measure(openmp, tmp_path, settings(), request(3))
    assert code == 0
    assert hello["application"] == "kernels-openmp"
    assert (answer["point"], answer["repetition"], answer["status"]) == ("p", 3, "ok")
    sides = [{side for side in ("comp", "comm", "total") if side in phase} for phase in answer["phases"]]
    assert sides == [
        {"comp", "total"},
        {"comm", "total"},
        {"comp", "comm", "total"},
        {"comp", "comm", "total"},
    ]
    assert all(len(phase["ranks"]) == 2 for phase in answer["phases"])
    facts = answer["facts"]
    # 2 flops an entry, and 10 a row besides, in each iteration; half of the search vector goes each way.
    assert facts["flops"] == facts["iterations"] * (2 * 48**2 + 10 * 48)
    assert facts["bytes_sent"] >= facts["iterations"] * 48 * 8
    assert 0 <= facts["stalled_modelled"] < 1
    assert "scheduling" in answer["flags"]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"iterations": 3}, "did not converge in 3 iterations: residual"),
        ({"shift": 5.0}, "not positive definite"),
    ],
)
def test_a_cg_that_does_not_converge_fails_with_the_reason_and_the_conversation_goes_on(
    openmp: Program, tmp_path: Path, changes: Record, reason: str
) -> None:
    code, (_, *answers) = measure(openmp, tmp_path, settings(**changes), request(0), request(1))
    assert code == 0
    assert [answer["status"] for answer in answers] == ["failed", "failed"]
    assert all(reason in answer["reason"] for answer in answers)


REFUSED: tuple[tuple[Record, str, str], ...] = (
    ({"task": "lu"}, "task", "no such task"),
    ({"block": 7}, "block", "does not divide the order 48"),
    ({"block": 48}, "block", "leave some of 2 ranks without"),
    ({"iterations": 0}, "iterations", "a whole number from 1"),
    ({"order": 1 << 30, "block": 1 << 20}, "order", "does not fit"),
    ({"build": "starpu"}, "build", "is the openmp build"),
    ({"comp_cores": []}, "comp_cores", "needs comp_cores"),
    ({"scheduling": False}, "comp_cores", "beside another thread"),
)


def test_what_cannot_be_met_ends_all_ranks_with_one_sentence(openmp: Program, tmp_path: Path) -> None:
    folders = [tmp_path / str(number) for number in range(len(REFUSED))]
    for folder in folders:
        folder.mkdir()
    # All at once: a launcher takes a second or two to end after its ranks have failed.
    with ThreadPoolExecutor() as pool:
        configs = [settings(**changes) for changes, _, _ in REFUSED]
        ended = list(pool.map(partial(measure, openmp), folders, configs))
    for (_, field, words), (code, (answer,)) in zip(REFUSED, ended, strict=True):
        assert code == 2
        assert answer["field"] == field
        assert words in answer["message"]
        assert answer["hint"]
