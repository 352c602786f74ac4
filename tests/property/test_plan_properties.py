"""What holds of every size, list of cores, order and machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elbowroom.errors import UsageError
from elbowroom.experiments.plans import Overrides, apply, decode, load
from elbowroom.machine.topology import Cache, Core, Machine, Nic, NumaNode
from elbowroom.plan.axes import core_counts, expand, with_neighbours
from elbowroom.plan.file import Plan
from elbowroom.plan.order import order_units
from elbowroom.plan.validation import validate
from elbowroom.quantities import format_cores, format_size, parse_cores, parse_size, short_cores


def outcome(call: Callable[..., Any], *arguments: object) -> tuple[Any, UsageError | None]:
    """What a call returns, or the usage error it ends with; any other exception is a failure."""
    try:
        return call(*arguments), None
    except UsageError as error:
        return None, error


NAMES = st.sampled_from(["cores", "placement", "sizes", "intensity", "frequency", "model", "quick", "ring"])


@st.composite
def machines(draw: st.DrawFn) -> Machine:
    """Machines of one to two sockets, one to two nodes per socket, with any non-empty cpuset of two cores
    or more.
    """
    packages, per_package = draw(st.integers(1, 2)), draw(st.integers(1, 2))
    per_node = draw(st.integers(2, 6))
    nodes = packages * per_package
    total = nodes * per_node
    shuffled = draw(st.permutations(range(total)))
    cores = tuple(
        Core(
            number=number,
            logical=index,
            package=index // (per_node * per_package),
            node=index // per_node,
            pus=(number,),
        )
        for index, number in enumerate(shuffled)
    )
    allowed = draw(st.sets(st.sampled_from(range(total)), min_size=2))
    nic = draw(st.none() | st.integers(0, nodes - 1))
    return Machine(
        name="any",
        model="any",
        cores=cores,
        nodes=tuple(
            NumaNode(
                number=node,
                package=node // per_package,
                memory=draw(st.integers(1 << 30, 1 << 38)),
                cores=tuple(core.number for core in cores if core.node == node),
            )
            for node in range(nodes)
        ),
        caches=draw(st.sampled_from([(), (Cache(level=3, size=32 << 20, cores=(0,)),)])),
        nics=() if nic is None else (Nic(name="n", kind="infiniband", node=nic),),
        allowed=tuple(sorted(allowed)),
        memory=1 << 38,
        hosts=draw(st.integers(1, 3)),
    )


@given(st.integers(1, 10**15))
def test_a_size_survives_being_written_and_read(size: int) -> None:
    assert parse_size(format_size(size)) == size


@given(st.text(max_size=12))
def test_any_text_is_a_size_or_a_usage_error(text: str) -> None:
    size, error = outcome(parse_size, text)
    assert error.hint if error else size >= 1


@given(st.lists(st.integers(0, 300), min_size=1, unique=True))
def test_cores_survive_being_written_and_read(cores: list[int]) -> None:
    assert parse_cores(format_cores(cores)) == tuple(cores)
    assert parse_cores(short_cores(cores)) == tuple(cores)


@given(st.integers(0, 500), st.integers(1, 8), st.integers(3, 256))
def test_cores_of_one_step_are_a_few_letters(first: int, step: int, count: int) -> None:
    assert len(short_cores(range(first, first + step * count, step))) <= len("9999-9999:9")


@given(st.text(max_size=12))
def test_any_text_is_a_list_of_cores_or_a_usage_error(text: str) -> None:
    cores, error = outcome(parse_cores, text)
    assert error.hint if error else len(set(cores)) == len(cores) > 0


@given(st.lists(st.integers(1, 1 << 30), min_size=1), st.integers(0, 7))
def test_neighbours_of_sizes_are_positive_sorted_and_unique(sizes: list[int], around: int) -> None:
    found = with_neighbours(tuple(sizes), around)
    assert list(found) == sorted(set(found))
    assert found[0] > 0
    assert set(sizes) <= set(found)


@given(st.integers(1, 500))
def test_counts_of_cores_lie_between_one_and_all(most: int) -> None:
    counts, notes = core_counts(("every", "few", "half", "all"), most)
    assert counts == tuple(range(1, most + 1))
    assert notes == []
    assert all(1 <= n <= most for n in core_counts(("few", "half"), most)[0])


@given(machines(), st.integers(1, 5), st.integers(0, 1000), st.booleans())
def test_an_order_visits_each_point_and_repetition_exactly_once(
    machine: Machine, repetitions: int, seed: int, reverse: bool
) -> None:
    points = expand(Plan(name="p", experiment="cores", n=("every",)), machine).points
    units = order_units(points, repetitions, seed, reverse)
    main = Counter((unit.point, unit.repetition) for unit in units if not unit.closing)
    assert main == {(point.id, repetition): 1 for point in points for repetition in range(repetitions)}
    assert units == order_units(points, repetitions, seed, reverse)
    closing = [unit.point for unit in units if unit.closing]
    assert len(set(closing)) == len(closing) > 0


@given(machines(), NAMES)
def test_whatever_expands_is_valid_on_the_machine(machine: Machine, name: str) -> None:
    from elbowroom import experiments

    plan = load(name)
    expansion = experiments.get(plan.experiment).expand(plan, machine)
    if expansion.points:
        validate(expansion.points, machine, hosts=plan.hosts)
    else:
        assert expansion.notes
    assert len({point.id for point in expansion.points}) == len(expansion.points)


@given(machines(), st.sets(st.integers(0, 30), min_size=1, max_size=4), st.none() | st.integers(0, 30))
def test_named_cores_are_used_or_refused(machine: Machine, cores: set[int], comm: int | None) -> None:
    plan = apply(load("cores"), Overrides(comp_cores=tuple(cores), comm_core=comm))
    points = expand(plan, machine).points
    _, error = outcome(validate, points, machine)
    if error:
        assert error.hint
    else:
        assert {core for point in points for core in point.comp_cores} == cores
        assert cores <= set(machine.allowed)
        assert comm is None or {point.comm_core for point in points} == {comm}


@given(
    st.dictionaries(
        st.text(min_size=1, max_size=10), st.integers() | st.text(max_size=5) | st.booleans(), max_size=4
    )
)
def test_any_table_is_a_plan_or_a_usage_error(raw: dict[str, object]) -> None:
    with pytest.raises(UsageError) as error:
        decode({"name": "p", **{key: value for key, value in raw.items() if key != "experiment"}})
    assert error.value.exit_code == 2


@given(
    st.sampled_from(sorted(Plan.__struct_fields__)),
    st.none()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=5)
    | st.booleans()
    | st.lists(st.integers()),
)
def test_any_value_of_any_key_is_accepted_or_names_its_field(key: str, value: object) -> None:
    _, error = outcome(decode, {"name": "p", "experiment": "cores", key: value})
    assert error is None or (error.field.split(".")[0] == key and error.hint)


@given(NAMES)
def test_applying_no_override_is_the_identity(name: str) -> None:
    assert apply(load(name), Overrides()) == load(name)
