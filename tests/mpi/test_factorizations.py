"""apps/factorizations in both builds, on ranks of a real MPI: right, with the messages of their graphs."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from elbowroom import cli
from elbowroom.launch.mpi import Mpi
from task_programs import TaskProgram, program_of

Record = dict[str, Any]
Use = tuple[object, str]

LARGEST_RESIDUAL = 1e-12

pytestmark = pytest.mark.skipif(
    len(os.sched_getaffinity(0)) < 2, reason="needs two cores: one computes, one communicates"
)


class Program(TaskProgram):
    """A build of the factorizations."""

    def __init__(self, name: str, mpi: Mpi) -> None:
        super().__init__("factorizations", name, mpi)

    def solve(self, ranks: int, *words: str) -> Record:
        """The record of a factorization that is right."""
        done = self.start(ranks, "solve", "--block", "16", "--json", *words)
        assert done.returncode == 0, done.stdout + done.stderr
        record: Record = json.loads(done.stdout.splitlines()[-1])
        assert record["valid"]
        assert record["facts"]["residual"] <= LARGEST_RESIDUAL
        return record

    def refusal(self, ranks: int, *words: str) -> Record:
        """The one error record of a program that ends at once."""
        done = self.start(ranks, "solve", *words)
        assert done.returncode == 2, done.stdout + done.stderr
        records = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        [error] = [record for record in records if record["record"] == "error"]
        return error


@pytest.fixture(scope="module")
def inline() -> Program:
    return program_of(Program, "inline")


@pytest.fixture(scope="module")
def starpu() -> Program:
    return program_of(Program, "starpu")


def cholesky(tiles: int) -> Iterator[tuple[tuple[int, int], list[Use]]]:
    """Where each task runs, and the tiles that it reads (r) and writes (w) in this order."""
    for k in range(tiles):
        yield (k, k), [((k, k), "rw")]
        for m in range(k + 1, tiles):
            yield (m, k), [((k, k), "r"), ((m, k), "rw")]
        for m in range(k + 1, tiles):
            for n in range(k + 1, m):
                yield (m, n), [((m, k), "r"), ((n, k), "r"), ((m, n), "rw")]
            yield (m, m), [((m, k), "r"), ((m, m), "rw")]


def qr(rows: int, columns: int) -> Iterator[tuple[tuple[int, int], list[Use]]]:
    """The same; ("T", m, k) are the factors of reflectors, which are with their tiles."""
    for k in range(min(rows, columns)):
        yield (k, k), [((k, k), "rw"), (("T", k, k), "w")]
        for n in range(k + 1, columns):
            yield (k, n), [((k, k), "r"), (("T", k, k), "r"), ((k, n), "rw")]
        for m in range(k + 1, rows):
            yield (m, k), [((k, k), "rw"), ((m, k), "rw"), (("T", m, k), "w")]
            for n in range(k + 1, columns):
                yield (m, n), [((m, k), "r"), (("T", m, k), "r"), ((k, n), "rw"), ((m, n), "rw")]


def counted(tasks: Iterator[tuple[tuple[int, int], list[Use]]], rows: int, columns: int) -> dict[str, float]:
    """Tasks, data that are sent, those with several recipients, and messages, of a grid of processes."""
    owner = lambda data: data[-2] % rows * columns + data[-1] % columns  # noqa: E731
    holders: dict[object, set[int]] = {}
    recipients: list[set[int]] = []
    sent: dict[object, set[int]] = {}
    home = count = 0
    for place, uses in tasks:
        count += 1
        rank = owner(place)
        for data, mode in uses:
            if "r" in mode and rank not in holders.setdefault(data, {owner(data)}):
                holders[data].add(rank)
                if data not in sent:
                    sent[data] = set()
                    recipients.append(sent[data])
                sent[data].add(rank)
            if "w" in mode:
                home += rank != owner(data)
                holders[data] = {owner(data), rank}
                sent.pop(data, None)
    return {
        "tasks": count,
        "data": len(recipients),
        "broadcasts": sum(len(ranks) > 1 for ranks in recipients),
        "messages": home + sum(map(len, recipients)),
    }


GRIDS = [(1, 1), (1, 2), (2, 2)]


@pytest.mark.parametrize(("rows", "columns"), GRIDS)
def test_cholesky_is_right_and_sends_what_its_graph_says(inline: Program, rows: int, columns: int) -> None:
    facts = inline.solve(rows * columns, "--grid", f"{rows}x{columns}", "--tiles", "9")["facts"]
    wanted = counted(cholesky(9), rows, columns)
    assert {key: facts[key] for key in wanted} == wanted
    assert facts.get("complete_share", 1.0) == 1.0
    assert facts["late"] == 0
    assert (wanted["broadcasts"] > 0) == (rows * columns > 2)


@pytest.mark.parametrize(("rows", "columns"), GRIDS)
def test_qr_is_right_and_sends_what_its_graph_says(inline: Program, rows: int, columns: int) -> None:
    words = ("--task", "qr", "--grid", f"{rows}x{columns}", "--tiles", "6", "--columns", "4")
    facts = inline.solve(rows * columns, *words)["facts"]
    wanted = counted(qr(6, 4), rows, columns)
    assert {key: facts[key] for key in wanted} == wanted
    assert facts["late"] == 0


@pytest.mark.parametrize("task", ["cholesky", "qr"])
def test_starpu_sends_the_same_and_is_right(starpu: Program, task: str) -> None:
    facts = starpu.solve(4, "--task", task, "--grid", "2x2", "--tiles", "6")["facts"]
    wanted = counted(cholesky(6) if task == "cholesky" else qr(6, 6), 2, 2)
    assert {key: facts[key] for key in wanted} == wanted


@pytest.mark.parametrize(
    "words",
    [("--no-broadcasts",), ("--tree", "two", "--segment", "512"), ("--wait-released",), ("--window", "20")],
)
def test_every_way_to_send_is_right(inline: Program, words: tuple[str, ...]) -> None:
    facts = inline.solve(4, "--grid", "2x2", "--tiles", "9", *words)["facts"]
    assert facts["messages"] == counted(cholesky(9), 2, 2)["messages"]


def test_recipients_beyond_a_short_window_are_late(inline: Program) -> None:
    facts = inline.solve(4, "--grid", "2x2", "--tiles", "9", "--window", "5")["facts"]
    assert facts["late"] > 0
    assert facts["complete_share"] < 1


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (("--grid", "2x2"), "grid"),
        (("--grid", "two"), "grid"),
        (("--tree", "bush"), "tree"),
        (("--task", "lu"), "task"),
        (("--tiles", "0"), "tiles"),
        (("--threads", "99"), "threads"),
    ],
)
def test_what_cannot_be_is_refused_by_name(inline: Program, words: tuple[str, ...], field: str) -> None:
    error = inline.refusal(2, *words)
    assert error["field"] == field
    assert error["hint"]


@pytest.mark.parametrize(("name", "shown"), [("cholesky", "6 x 6 tiles"), ("qr", "6 x 3 tiles")])
def test_a_run_without_starpu_has_the_facts_of_the_rest_for_scripts(
    inline: Program,
    embedded_mpi: Mpi,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    name: str,
    shown: str,
) -> None:
    monkeypatch.setenv("ELBOWROOM_STARPU", "none")
    settings = ["tiles=6", "block=16", "grid=2x2", "trees=none,two", "builds=inline,starpu", "control=false"]
    settings += ["window=0.005"] + ["columns=3"] * (name == "qr")
    words = [word for setting in settings for word in ("--set", setting)]
    code = cli.run(
        ["run", name, *words, "--repeat", "1", "--no-report", "--json", "--out", str(tmp_path / "r")]
    )
    printed = capfd.readouterr()
    assert code in (0, 3), printed.err
    told = json.loads(printed.out)
    assert any("hidden by ELBOWROOM_STARPU=none" in note["reason"] for note in told["notes"])
    points = told["points"]
    assert [point["status"] for point in points] == ["ok", "ok"], points[0]["reason"]
    wanted = counted(cholesky(6) if name == "cholesky" else qr(6, 3), 2, 2)
    for point in points:
        facts = point["facts"]
        assert facts["residual"] <= LARGEST_RESIDUAL
        assert facts["complete_share"] == 1
        assert {key: facts[key] for key in wanted} == wanted
        assert point["comp"]["together"]["unit"] == "Mflop/s"
    assert cli.run(["show", str(tmp_path / "r")]) in (0, 3)
    assert shown in capfd.readouterr().out
