"""Whether two descriptions are of the same machine."""

from __future__ import annotations

import msgspec
import pytest

from elbowroom.errors import UsageError
from elbowroom.machine.identity import HARDWARE, SHAPE, STRICT_SHAPE, check_same, difference
from elbowroom.machine.layout import regular_machine
from elbowroom.machine.topology import Machine
from elbowroom.models.curves import Shape


def shape(name: str = "node-01", virtual: bool = False) -> Shape:
    return Shape(name=name, cores_first_socket=8, numa_per_socket=1, sockets=2, virtual=virtual)


def test_a_virtual_stand_in_is_the_same_machine_unless_asked_strictly() -> None:
    assert difference(shape(), shape(virtual=True), SHAPE) is None
    found = difference(shape(), shape(virtual=True), STRICT_SHAPE)
    assert found is not None
    assert found.text("in the model", "here") == "virtual is False in the model and True here"


def test_nodes_of_a_cluster_differ_in_the_numbers_of_their_names_only() -> None:
    assert difference(shape(), shape("node-17"), SHAPE, cluster=True) is None
    assert difference(shape(), shape("node-17"), SHAPE) is not None
    assert difference(shape(), shape("login-01"), SHAPE, cluster=True) is not None


def test_machines_of_other_cores_are_refused_without_a_list_of_them() -> None:
    one, other = (
        regular_machine(name="a", model="m", cores_per_socket=count, numa_per_socket=1, sockets=1)
        for count in (4, 8)
    )
    check_same(difference(one, one, HARDWARE), field="run", value="r", hint="go there")
    with pytest.raises(UsageError, match="run 'r': is from another machine: its cores differ; go there"):
        check_same(difference(one, other, HARDWARE), field="run", value="r", hint="go there")


def machine_with(*memories: int) -> Machine:
    machine = regular_machine(name="a", model="m", cores_per_socket=4, numa_per_socket=2, sockets=1)
    nodes = [
        msgspec.structs.replace(node, memory=memory)
        for node, memory in zip(machine.nodes, memories, strict=True)
    ]
    return msgspec.structs.replace(machine, nodes=tuple(nodes), memory=sum(memories))


def test_memory_that_the_kernel_keeps_on_another_node_after_a_boot_is_no_other_machine() -> None:
    # As seen of a guest of 1 GiB a node, before and after a boot.
    before, after = machine_with(962 << 20, 1007 << 20), machine_with(1007 << 20, 943 << 20)
    assert difference(before, after, (*HARDWARE, "memory")) is None


def test_a_node_that_lost_a_memory_module_is_another_machine() -> None:
    before, after = machine_with(8 << 30, 8 << 30), machine_with(8 << 30, 6 << 30)
    found = difference(before, after, HARDWARE)
    assert found is not None
    assert found.text() == "its nodes differ"
