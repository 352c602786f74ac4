"""Broadcasts in a trace: tree edges between ranks, and when each rank has the data and is done with them."""

from __future__ import annotations

import json
import os
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

from elbowroom import cli
from elbowroom.launch.mpi import find_mpi
from trace_rings import read_rings
from traced import RECEIVE, SEND, ends

HERE = Path(__file__).parent
RANKS = range(4)
BROADCASTS = 20
TREES = ("flat tree", "chain tree", "binary tree", "binomial tree", "two trees")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, with the library that was built beside the simulator of broadcasts."""
    library = Path(os.environ.get("ELBOWROOM_BROADCAST_SIMULATOR", "")).parent / "libelbow_broadcast.so"
    if not library.is_file():
        pytest.skip("libelbow_broadcast.so was not built: ELBOWROOM_BROADCAST_SIMULATOR names none")
    made = tmp_path_factory.mktemp("program") / "trace_broadcasts"
    wrapper = Path(find_mpi().compiler).with_name("mpicc")
    words = [wrapper, "-Wall", "-Werror", "-o", made, HERE / "trace_broadcasts.c"]
    words += ["-I", HERE.parents[1] / "include", library, f"-Wl,-rpath,{library.parent}"]
    subprocess.run(words, check=True)
    return made


@pytest.fixture(scope="module")
def traced(program: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("traced") / "t"
    words = [find_mpi().launcher, "--oversubscribe", "-n", str(len(RANKS)), str(program)]
    assert cli.run(["trace", "record", "-o", str(folder), "--", *words]) == 0
    return folder


def test_each_recipient_has_an_edge_from_its_parent(traced: Path) -> None:
    edges: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
    received = []
    for rank in RANKS:
        recorded = read_rings(traced, rank)
        received += ends(recorded, rank, RECEIVE, "tree edge")
        for end in ends(recorded, rank, SEND, "tree edge"):
            edges[end.tag].append((end.source, end.destination, end.bytes))
    assert sorted(received) == sorted(
        end for rank in RANKS for end in ends(read_rings(traced, rank), rank, SEND, "tree edge")
    )
    assert sorted(edges) == list(range(BROADCASTS))
    for tag, of_one in edges.items():
        root, large, two = (0 if tag < 10 else 2), tag % 2 == 1, tag % 10 >= 8
        # Two trees share the segments: each recipient has a parent in either.
        stripes = 2 if two and large else 1
        recipients = sorted(destination for _, destination, _ in of_one)
        assert recipients == sorted(stripes * [rank for rank in RANKS if rank != root])
        assert {size for _, _, size in of_one} == {200000 // stripes if large else 1000}


def test_each_rank_has_the_data_before_it_is_done_with_them(traced: Path) -> None:
    trees = set()
    for rank in RANKS:
        states: dict[tuple[int, int], dict[str, int]] = defaultdict(dict)
        for event in read_rings(traced, rank).events:
            if event.category == "broadcast" and "(" in event.type:
                state, tree = event.type.rstrip(")").split(" (")
                trees.add(tree)
                states[event.first, event.small][state] = event.time
        assert len(states) == BROADCASTS
        for (root, _), times in states.items():
            if rank == root:
                assert list(times) == ["released"]
            else:
                assert times["received"] <= times["released"]
    assert set(TREES) <= trees


def test_edges_and_states_are_in_statistics_and_in_the_timeline(
    traced: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["trace", "stat", str(traced), "--json"]) == 0
    stat = json.loads(capfd.readouterr().out)
    types = {item["name"]: item for item in stat["types"]}
    assert types["tree edge"]["category"] == "broadcast"
    assert "released (binary tree)" in types
    page = tmp_path / "t.html"
    assert cli.run(["trace", "merge", str(traced), "-o", str(page)]) == 0
    assert "tree edge" in page.read_text()
