"""Effects that a machine's file plants: they decide what happens together, and nothing else."""

from __future__ import annotations

import pytest

import elbowroom
from elbowroom.errors import UsageError
from elbowroom.points.point import Point, Steady
from elbowroom.points.unit import Unit
from elbowroom.virtual.answers import VirtualMachine
from elbowroom.virtual.definition import decode, encode
from elbowroom.virtual.effects import Effect, at

PLAIN = elbowroom.machine_text(elbowroom.virtual_machine("henri"))


def planted(*effects: str) -> VirtualMachine:
    text = PLAIN + "".join(f"\n[[effects]]\n{effect}\n" for effect in effects)
    return VirtualMachine(decode(text, "mine.toml"), noise=0.0)


def point(kernel: str = "triad", n: int = 4, size: int = 64_000_000, core: int = 35) -> Point:
    return Point(
        plan="test", kernel=kernel, n=n, size=size, comp_node=0, comm_node=0, comm_core=core,
        comm_cores=(core,), comp_cores=tuple(range(n)), metric="latency" if size < 65536 else "bandwidth",
        sequence=("A", "B", "AB"),
    )  # fmt: skip


def kept(machine: VirtualMachine, asked: Point) -> tuple[float, float]:
    """What the communication and the computation keep."""
    unit = Unit(point=asked.id, repetition=0)
    alone, comm, both = machine.answer(unit, asked.workload.request(asked, unit, Steady()))["phases"]
    ratio = both["comm"]["value"] / comm["comm"]["value"]
    share = both["comp"]["rate"] / alone["comp"]["rate"]
    return 1 / ratio if asked.metric == "latency" else ratio, share


def test_a_curve_is_straight_between_its_points_and_constant_beyond_them() -> None:
    curve = ((1.0, 1.0), (3.0, 0.5))
    assert [at(curve, x) for x in (0, 1, 2, 3, 9)] == [1.0, 1.0, 0.75, 0.5, 0.5]


def test_both_sides_keep_what_is_planted() -> None:
    machine = planted("comm = [[1, 1], [4, 0.4]]\ncomp = [[1, 0.8]]")
    assert kept(machine, point()) == pytest.approx((0.4, 0.8))


def test_a_latency_grows_by_what_is_kept_and_by_what_is_added() -> None:
    assert kept(planted("comm = [[1, 0.5]]"), point(size=4))[0] == pytest.approx(0.5)
    [share, _] = kept(planted("added = [[1, 1.67]]"), point(size=4))
    assert share == pytest.approx(0.5, rel=0.01)


def test_the_last_effect_of_the_file_decides() -> None:
    machine = planted("comm = [[1, 0.4]]", 'of = ["triad"]\ncomm = [[1, 0.7]]')
    assert kept(machine, point())[0] == pytest.approx(0.7)
    assert kept(machine, point(kernel="copy"))[0] == pytest.approx(0.4)


@pytest.mark.parametrize(
    ("choice", "core", "share"),
    [
        ('thread = "far"', 35, 0.4),
        ('thread = "near"', 0, 0.4),
        ("n = [3]", 35, None),
        ("comp_node = 1", 35, None),
    ],
)
def test_an_effect_is_about_the_points_that_it_names(choice: str, core: int, share: float | None) -> None:
    asked = point(core=core)
    plain = kept(planted(), asked)[0]
    assert kept(planted(f"{choice}\ncomm = [[1, 0.4]]"), asked)[0] == pytest.approx(share or plain)


def test_kernels_without_memory_keep_everything_unless_they_are_named() -> None:
    assert kept(planted("comm = [[1, 0.4]]"), point(kernel="prime"))[0] == pytest.approx(1)
    assert kept(planted('of = ["prime"]\ncomm = [[1, 0.4]]'), point(kernel="prime"))[0] == pytest.approx(0.4)


def test_a_factor_changes_what_the_truth_says() -> None:
    before = kept(planted(), point())
    after = kept(planted("comm_factor = 0.9\ncomp_factor = 0.8"), point())
    assert after == pytest.approx((0.9 * before[0], 0.8 * before[1]))


def test_a_list_of_tasks_is_answered_only_where_it_is_planted() -> None:
    polling = point(kernel="polling", size=4)
    assert "no list of tasks" in planted().refuse(polling)
    machine = planted('of = ["polling"]\nover = "cursor"\nadded = [[1, 1.67]]')
    assert machine.refuse(polling) == ""
    assert kept(machine, polling)[0] == pytest.approx(0.5, rel=0.01)


def test_a_machine_with_effects_is_written_and_read_back() -> None:
    text = (
        'of = ["sender"]\nover = "bytes"\ncomm = [[0, 1], [9, 0.5]]\nspread = 0.5\nmisses = {L1 = [[0, 8]]}'
    )
    definition = planted(text, 'thread = "far"\nn = [3]\ncomp = [[1, 0.5]]').definition
    assert decode(encode(definition), "mine.toml") == definition


@pytest.mark.parametrize(
    ("effect", "field"),
    [
        ("comm = [[3, 1], [2, 1]]", "effects.comm"),
        ("comp = [[1, 0]]", "effects.comp"),
        ("misses = {L1 = [[0, -1]]}", "effects.misses.L1"),
        ("commm = [[1, 1]]", "effects"),
        ('over = "x"', "effects.over"),
    ],
)
def test_an_effect_that_cannot_be_is_refused_by_name(effect: str, field: str) -> None:
    with pytest.raises(UsageError) as error:
        planted(effect)
    assert error.value.field == field
    assert error.value.hint


def test_an_effect_says_nothing_by_default() -> None:
    assert kept(planted(""), point()) == kept(planted(), point())
    assert Effect().of == ()
