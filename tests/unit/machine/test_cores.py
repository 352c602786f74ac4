"""How the cores of a machine are split into those of a program and those of a load."""

from __future__ import annotations

from pathlib import Path

import pytest

from elbowroom.errors import UsageError
from elbowroom.machine.cores import load_split


def machine(folder: Path, units: int, siblings: int = 1, shared: int = 0) -> Path:
    """Processing units of cores with `siblings` each, `shared` units on a last-level cache (0: unknown)."""
    for unit in range(units):
        first = unit - unit % siblings
        topology = folder / f"cpu{unit}" / "topology"
        topology.mkdir(parents=True)
        (topology / "thread_siblings_list").write_text(f"{first}-{first + siblings - 1}\n")
        if shared:
            cache = folder / f"cpu{unit}" / "cache" / "index3"
            cache.mkdir(parents=True)
            begin = unit - unit % shared
            (cache / "shared_cpu_list").write_text(f"{begin}-{begin + shared - 1}\n")
    return folder


def test_of_the_cores_of_each_cache_the_load_has_half(tmp_path: Path) -> None:
    cpus = machine(tmp_path, units=8, shared=4)
    assert load_split(range(8), cpus=cpus) == ((0, 1, 4, 5), (2, 3, 6, 7))


def test_threads_of_one_core_stay_together(tmp_path: Path) -> None:
    cpus = machine(tmp_path, units=8, siblings=2)
    assert load_split(range(8), cpus=cpus) == ((0, 2), (4, 6))


def test_cores_with_caches_of_their_own_are_halved_together(tmp_path: Path) -> None:
    cpus = machine(tmp_path, units=4, shared=1)
    assert load_split(range(4), cpus=cpus) == ((0, 1), (2, 3))


def test_a_single_core_has_no_room_for_a_load(tmp_path: Path) -> None:
    assert load_split([0], cpus=machine(tmp_path, units=1)) == ((0,), ())


def test_the_program_has_what_the_given_cores_leave(tmp_path: Path) -> None:
    assert load_split(range(4), [2], machine(tmp_path, units=4)) == ((0, 1, 3), (2,))


@pytest.mark.parametrize(("cores", "words"), [([7], "not cores"), ([0, 1], "no core for the program")])
def test_cores_that_cannot_be_the_loads_are_refused(tmp_path: Path, cores: list[int], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        load_split(range(2), cores, machine(tmp_path, units=2))
