"""Files of applications that are measured beside each other."""

from __future__ import annotations

from collections import Counter

import pytest

from elbowroom.errors import MachineError, UsageError
from elbowroom.schedule.applications import Applications, decode, turns

FILE = """
cores = 4
nodes = 2
number = 'seconds (\\S+)'
[apps.FT]
command = "mpirun -n 8 --cores {cores} --nodes {nodes} --job {job} ./ft"
[apps.CG]
command = "./cg"
number = 'time: (\\d+)'
"""


def read(text: str = FILE) -> Applications:
    return decode(text, "apps.toml")


def test_a_shared_job_has_half_of_the_cores_of_twice_the_nodes() -> None:
    exclusive, shared = read().words("FT", "exclusive"), read().words("FT", "shared", 1)
    assert exclusive[4:] == ["4", "--nodes", "2", "--job", "0", "./ft"]
    assert shared[4:] == ["2", "--nodes", "4", "--job", "1", "./ft"]


def test_ranks_are_cores_times_nodes() -> None:
    read_back = read(FILE.replace("-n 8", "-n {ranks}"))
    assert {read_back.words("FT", mode)[2] for mode in ("exclusive", "half", "shared")} == {"8"}  # type: ignore[arg-type]


def test_a_file_without_applications_is_refused() -> None:
    with pytest.raises(UsageError, match="has no application"):
        read("cores = 2\n[apps]\n")


def test_the_last_number_of_the_output_counts() -> None:
    assert read().seconds("FT", "seconds 3.5 seconds 2.5", 9.0) == 2.5
    assert read().seconds("CG", "seconds 3.5 time: 7", 9.0) == 7.0


def test_without_an_expression_the_wall_time_counts() -> None:
    assert decode("cores = 2\n[apps.a]\ncommand = 'x'", "f").seconds("a", "seconds 3", 9.0) == 9.0


def test_an_output_without_a_time_is_named() -> None:
    with pytest.raises(MachineError, match="matches no time in the output of FT: nothing"):
        read().seconds("FT", "", 9.0)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        (("cores = 4", "cores = 3"), "cannot be halved"),
        (("cores = 4", ""), "cores"),
        (("./cg", "./cg {hosts}"), r"names \{hosts\}"),
        (("./cg", "./cg {"), "cannot be read"),
        (("./cg", ""), "is empty"),
        (("./cg", "./cg 'x"), "cannot be read"),
        (("time: (", "time: (("), "is not a regular expression"),
        (("time: (\\d+)", "time"), "has 0 groups"),
        (("nodes = 2", "nodes = 0"), "nodes"),
        (("nodes = 2", "hosts = 2"), "hosts"),
        (("nodes = 2", "nodes = 33\nnic = {bandwidth = '50MB/s'}"), "needs 66 emulated nodes"),
        (("nodes = 2", "nic = {bandwidth = '50 apples'}"), "not a bandwidth"),
        (("nodes = 2", "nic = {bandwidth = '1B/s'}"), "is below 1 kB/s"),
        (("nodes = 2", "nic = {}"), "bandwidth"),
        (("[apps.FT]", "[others]"), "others"),
    ],
)
def test_wrong_files_are_one_sentence(changed: tuple[str, str], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        read(FILE.replace(*changed))


def test_each_repetition_has_all_applications_alone_twice_and_all_pairs() -> None:
    found = turns(read(), 3, seed=1)
    assert len({turn.key for turn in found}) == len(found)
    assert Counter(turn.repetition for turn in found) == {0: 7, 1: 7, 2: 7}
    pairs = {(turn.first, turn.second) for turn in found if turn.mode == "shared"}
    assert pairs == {("FT", "FT"), ("FT", "CG"), ("CG", "CG")}
    assert turns(read(), 3, seed=1) == found != turns(read(), 3, seed=2)
