"""Launch lines by their options, for all launchers."""

from __future__ import annotations

import pytest

from elbowroom.launch.launch_options import LaunchLine, UnreadLine, read_line
from elbowroom.launch.mpi import Mpi
from launch_lines import MPICH, OPENMPI, OPENMPI5


def line(text: str, of: Mpi | None = OPENMPI) -> LaunchLine:
    return read_line(text.split(), of)


@pytest.mark.parametrize(
    ("text", "of", "program"),
    [
        ("mpirun -np 4 --mca btl tcp,self -x A=1 --bind-to none ./app --bind-to core", OPENMPI, 2),
        ("env A=1 mpirun --map-by=ppr:2:node -H a:2,b:2 ./app", OPENMPI5, 0),
        ("timeout 10 mpiexec -n 2 -genv A 1 -bind-to core:2 ./app -n 3", MPICH, 2),
        ("srun -n4 -c 2 --cpu-bind=none -N 1 ./app -c 1", None, 2),
        ("srun --ntasks 4 --exclusive -t5 ./app", None, 0),
        ("flux run -n 4 -o cpu-affinity=off --env=A=1 ./app", None, 0),
        ("mpirun -n 2 -- ./app", OPENMPI, 0),
    ],
)
def test_a_line_has_all_its_words_and_its_program_begins_behind_the_options(
    text: str, of: Mpi | None, program: int
) -> None:
    read = line(text, of)
    assert read.program[0] == "./app"
    assert len(read.program) == program + 1
    assert list(read.command) == [word for word in text.split() if word != "--"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("mpirun -n 1 ./a : -n 1 ./b", "several programs"),
        ("mpirun -rf ranks -n 2 ./app", "rankfile"),
        ("./run.sh", "script"),
        ("mpirun --no-such-option 2 ./app", "not known"),
        ("mpirun -n", "lacks"),
        ("mpirun -n 2", "no program"),
        ("flux submit -n 2 ./app", "flux run"),
    ],
)
def test_lines_that_cannot_be_rewritten_say_why(text: str, why: str) -> None:
    with pytest.raises(UnreadLine, match=why):
        line(text)


def test_an_option_is_replaced_where_it_stands_and_not_given_twice() -> None:
    changed = line("mpirun -n 2 --bind-to none --mca a 1 --mca b 2 ./app").having("--bind-to", "core")
    assert changed.typed() == "mpirun -n 2 --bind-to core --mca a 1 --mca b 2 ./app"
    assert changed.having_mca("b", "3").typed() == "mpirun -n 2 --bind-to core --mca a 1 --mca b 3 ./app"
    assert line("srun -n4 -c2 ./app", None).having("--cpus-per-task=8").typed() == (
        "srun -n4 --cpus-per-task=8 ./app"
    )


@pytest.mark.parametrize(
    ("text", "of", "typed"),
    [
        ("mpirun -n 2 ./app", OPENMPI, "mpirun -n 2 -x A=2 ./app"),
        ("mpirun -x A=1 -n 2 ./app", OPENMPI, "mpirun -n 2 -x A=2 ./app"),
        ("mpiexec -genv A 1 -n 2 ./app", MPICH, "mpiexec -n 2 -genv A 2 ./app"),
        ("env A=1 mpiexec -n 2 ./app", MPICH, "env A=2 mpiexec -n 2 ./app"),
        ("srun -n 2 ./app", None, "A=2 srun -n 2 ./app"),
        ("srun --export=B=1 -n 2 ./app", None, "srun --export=B=1,A=2 -n 2 ./app"),
        ("flux run -n 2 --env=A=1 ./app", None, "flux run -n 2 --env=A=2 ./app"),
    ],
)
def test_a_variable_is_set_as_its_launcher_takes_it(text: str, of: Mpi | None, typed: str) -> None:
    changed = line(text, of).having_variable("A", "2")
    assert changed.typed() == typed
    assert changed.variable("A", {}) == "2"


def test_a_variable_is_taken_away_from_the_line_and_from_the_environment() -> None:
    assert line("env A=1 mpirun -n 2 ./app").without_variable("A", {}).typed() == "mpirun -n 2 ./app"
    assert line("mpirun -n 2 ./app").without_variable("A", {"A": "1"}).typed() == (
        "env -u A mpirun -n 2 ./app"
    )


def test_programs_that_pin_are_taken_away_on_both_sides_of_the_launcher() -> None:
    pinned = line("env A=1 taskset -c 0 mpirun -n 2 numactl -C 0 -m 0 ./app -C 1")
    assert pinned.wrapped_by(("taskset", "numactl"))
    assert pinned.without_wrappers(("taskset", "numactl")).typed() == "env A=1 mpirun -n 2 ./app -C 1"
