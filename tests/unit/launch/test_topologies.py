"""Topologies of all versions and shapes: read by libhwloc, planned on, and refused in sentences."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import msgspec
import pytest

from elbowroom import cli, experiments
from elbowroom.errors import UsageError
from elbowroom.experiments.plans import load
from elbowroom.launch import hwloc_child, topologies
from elbowroom.launch.topologies import read_topology_file
from elbowroom.machine import hwloc_xml
from elbowroom.machine.hwloc import machine_of_document, read_topology
from elbowroom.machine.hwloc_xml import parse_xml, text_for_hwloc2
from elbowroom.machine.layout import topology_xml
from elbowroom.machine.topology import Machine
from elbowroom.models.run_data import layout_of
from elbowroom.plan.validation import validate
from elbowroom.virtual.answers import VirtualMachine
from elbowroom.virtual.machines import generic, simulated, truth_of
from topologies import HEAD, Made, topology, topology_of_version_1

SHAPES = 500
SAME = ("cores", "nodes", "caches", "nics", "allowed", "core_kinds", "memory_kinds")


def _sets(cpus: str, nodes: str) -> str:
    return f'cpuset="{cpus}" complete_cpuset="{cpus}" nodeset="{nodes}" complete_nodeset="{nodes}"'


def _core(number: int, nodes: str) -> str:
    sets = _sets(f"0x{1 << number:x}", nodes)
    unit = f'<object type="PU" os_index="{number}" {sets} gp_index="{20 + number}"/>'
    return f'<object type="Core" os_index="{number}" {sets} gp_index="{10 + number}">{unit}</object>'


def _machine(
    body: str, *, cpus: str = "0x3", nodes: str = "0x1", version: str = "2.0", more: str = ""
) -> str:
    allowed = f'allowed_cpuset="{cpus}" allowed_nodeset="{nodes}"'
    machine = (
        f'<object type="Machine" os_index="0" {_sets(cpus, nodes)} {allowed} gp_index="1">{body}</object>'
    )
    return f'{HEAD}<topology version="{version}">{machine}{more}</topology>'


def _node(number: int, cpus: str, more: str = "") -> str:
    sets = _sets(cpus, f"0x{1 << number:x}")
    return f'<object type="NUMANode" os_index="{number}" {sets} gp_index="{30 + number}" {more}/>'


PLAIN = _machine(_node(0, "0x3") + _core(0, "0x1") + _core(1, "0x1"))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "made.xml"


def _read(file: Path, text: str) -> Machine:
    file.write_text(text, encoding="utf-8")
    return read_topology_file(file)


def _refused(file: Path, data: bytes) -> str:
    file.write_bytes(data)
    with pytest.raises(UsageError) as caught:
        read_topology_file(file)
    assert caught.value.hint
    assert str(file) in caught.value.sentence()
    return caught.value.sentence()


def _through_hwloc(made: Made) -> Machine:
    """As read_topology_file, without a process for each."""
    text = text_for_hwloc2(parse_xml("made.xml", made.text.encode())).encode()
    return machine_of_document(parse_xml("made.xml", hwloc_child.convert(hwloc_child.library(), text)))


def test_topologies_of_all_shapes_are_read_planned_on_and_written_again() -> None:
    plan, planned, built = load("model"), 0, set()
    for seed in range(SHAPES):
        made = topology(seed)
        machine = simulated(_through_hwloc(made))
        assert (len(machine.cores), len(machine.nodes)) == (made.cores, made.nodes), (seed, made.what)
        expansion = experiments.expand(plan, machine)
        assert expansion.points or (made.cores == 1 and expansion.notes), (seed, made.what)
        if expansion.points:
            validate(expansion.points, machine)
            planned += 1
        definition = generic(machine)
        if (definition.local, definition.remote) not in built:
            built.add((definition.local, definition.remote))
            virtual = VirtualMachine(definition, machine=machine)
            assert [virtual.refuse(point) for point in expansion.points[-2:-1]] in ([], [""]), (
                seed,
                made.what,
            )
        again = read_topology(topology_xml(machine))
        assert all(getattr(again, name) == getattr(machine, name) for name in SAME), (seed, made.what)
    assert planned > 0.9 * SHAPES


@pytest.mark.parametrize("seed", [0, 3, 7, 12, 40])
def test_a_made_topology_is_shown_and_planned_on_by_the_command_line(file: Path, seed: int) -> None:
    file.write_text(topology(seed).text, encoding="utf-8")
    for command in (["machine", "show", str(file)], ["run", "model", "--machine", str(file), "--dry-run"]):
        assert cli.run(command) == 0


@pytest.mark.parametrize("seed", range(30))
def test_topologies_of_version_1_are_read(seed: int) -> None:
    made = topology_of_version_1(seed)
    machine = _through_hwloc(made)
    assert (len(machine.cores), len(machine.nodes)) == (made.cores, made.nodes), made.what


def test_a_machine_of_one_core_has_an_empty_plan_with_reasons(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(_machine(_node(0, "0x1") + _core(0, "0x1"), cpus="0x1"), encoding="utf-8")
    assert cli.run(["run", "model", "--machine", str(file), "--dry-run"]) == 0
    output = capsys.readouterr().out
    assert "0 points" in output
    assert "none left to compute" in output


def test_single_requests_of_unlike_or_many_sockets_are_refused_in_a_sentence() -> None:
    definition = msgspec.structs.replace(generic(simulated(_through_hwloc(topology(0)))), sockets=3)
    with pytest.raises(UsageError, match="one or two sockets that are alike"):
        truth_of(msgspec.structs.replace(definition, truth="requests"), lambda request: request)


# What is unusual


def test_cores_without_memory_take_the_nearest_node_and_it_is_said(file: Path) -> None:
    body = (
        f'<object type="Package" os_index="0" {_sets("0x1", "0x0")} gp_index="2">{_core(0, "0x0")}</object>'
        f'<object type="Package" os_index="1" {_sets("0x2", "0x2")} gp_index="3">{_node(1, "0x2")}'
        f"{_core(1, '0x2')}</object>"
    )
    machine = _read(file, _machine(body, nodes="0x2"))
    assert [core.node for core in machine.cores] == [1, 1]
    assert machine.nodes[0].cores == (1,)
    assert machine.assumed == ("core 0 has no NUMA node; node 1, the nearest, is taken",)
    assert machine.sockets == ((1,), (0,))
    shape = layout_of(machine).shape
    assert (shape.layout, shape.nodes, shape.cores_first_socket) == (((1, 1), (1, 0)), 1, 1)


def test_sockets_without_numbers_are_counted(file: Path) -> None:
    body = "".join(
        f'<object type="Package" {_sets(hex(1 << k), hex(1 << k))} gp_index="{2 + k}">{_node(k, hex(1 << k))}'
        f"{_core(k, hex(1 << k))}</object>"
        for k in (0, 1)
    )
    machine = _read(file, _machine(body, nodes="0x3"))
    assert [core.package for core in machine.cores] == [0, 1]
    assert "no numbers of their own" in machine.assumed[0]


def test_sockets_that_share_a_node_are_one_for_models_and_nothing_is_remote(file: Path) -> None:
    body = _node(0, "0x3") + "".join(
        f'<object type="Package" os_index="{k}" {_sets(hex(1 << k), "0x1")} gp_index="{2 + k}">'
        f"{_core(k, '0x1')}</object>"
        for k in (0, 1)
    )
    machine = _read(file, _machine(body))
    assert machine.packages == 2
    assert machine.sockets == ((0, 1),)
    assert machine.assumed == ("sockets 0-1 share NUMA node 0: models count them as one",)
    assert generic(machine).remote is None


def test_kinds_of_cores_and_memory_are_named(file: Path) -> None:
    kinds = "".join(
        f'<cpukind cpuset="{cpus}"><info name="CoreType" value="{name}"/></cpukind>'
        for cpus, name in (("0x2", "IntelAtom"), ("0x1", "IntelCore"))
    )
    nodes = _node(0, "0x3") + _node(1, "0x3", 'subtype="HBM"') + _node(2, "0x3")
    text = _machine(nodes + _core(0, "0x7") + _core(1, "0x7"), nodes="0x7", more=kinds)
    machine = _read(file, text)
    assert [core.node for core in machine.cores] == [0, 0]
    assert [node.number for node in machine.ordinary_nodes] == [0]
    assert machine.peculiarities == (
        "cores of 2 kinds: 1 IntelAtom (1), 1 IntelCore (0)",
        "NUMA node 1 is HBM",
        "NUMA node 2 is second memory of the same cores",
    )


def test_offline_and_disallowed_parts_do_not_hide_the_rest(file: Path) -> None:
    offline = PLAIN.replace('complete_cpuset="0x3"', 'complete_cpuset="0xf"', 1)
    disallowed = offline.replace('allowed_cpuset="0x3"', 'allowed_cpuset="0x1"')
    machine = _read(file, disallowed)
    assert [core.number for core in machine.cores] == [0, 1]
    assert machine.allowed == (0,)


# Versions


def test_devices_and_facts_of_version_3_are_those_of_version_2(file: Path) -> None:
    device = '<object type="OSDev" gp_index="90" name="mlx5_0" osdev_type="{}"/>'
    body = _node(0, "0x3") + _core(0, "0x1") + _core(1, "0x1")
    facts = '<info name="HostName" value="host7"/>'
    second = _read(file, _machine(facts + body + device.format(3)))
    third = _read(file, _machine(body + device.format(48), version="3.0", more=facts))
    assert second == third
    assert (third.name, third.nics[0].kind) == ("host7", "openfabrics")


@pytest.mark.parametrize("spoiled", [b"<object", b'os_index="0"', b"</topology>"])
def test_version_3_that_cannot_be_read_is_refused_with_the_way_to_export_it(
    file: Path, spoiled: bytes
) -> None:
    text = _machine(_node(0, "0x3") + _core(0, "0x1"), version="3.0").encode()
    assert "--export-xml-flags v2" in _refused(file, text.replace(spoiled, b"<", 1))


def test_version_3_that_hwloc_refuses_is_refused_with_the_way_to_export_it(file: Path) -> None:
    assert "--export-xml-flags v2" in _refused(file, _machine("", version="3.0").encode())


def test_unknown_versions_are_refused_with_the_way_to_export_them(file: Path) -> None:
    assert "--export-xml-flags v2" in _refused(file, PLAIN.replace('"2.0"', '"4.0"').encode())


def test_without_libhwloc_version_2_is_read_and_version_1_names_the_package(
    file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stand_in = tmp_path / "child.py"
    stand_in.write_text(f"import sys; sys.exit({hwloc_child.NO_LIBRARY})")
    monkeypatch.setattr(hwloc_child, "__file__", str(stand_in))
    assert len(_read(file, PLAIN).cores) == 2
    assert "libhwloc" in _refused(file, topology_of_version_1(1).text.encode())


def test_a_libhwloc_that_aborts_is_a_sentence(
    file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stand_in = tmp_path / "child.py"
    stand_in.write_text("import os; os.abort()")
    monkeypatch.setattr(hwloc_child, "__file__", str(stand_in))
    assert "signal 6" in _refused(file, PLAIN.encode())
    assert topologies.hwloc_child is hwloc_child


# Bad input

BOMB = b'<!DOCTYPE a [<!ENTITY a "aa"><!ENTITY b "&a;&a;">]><topology version="2.0">&b;</topology>'


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "not XML"),
        (bytes(range(256)), "not XML"),
        (gzip.compress(PLAIN.encode()), "gunzip"),
        (b"<html></html>", "<html>"),
        (BOMB, "entities"),
        (b"<topology version='2.0'>" + b"<object>" * 300, "nested elements"),
        (b'<?xml version="1.0" encoding="nonsense"?>' + PLAIN.encode().partition(b"\n")[2], "not XML"),
        (b'<topology version="2.0"></topology>', "no"),
        (PLAIN.replace('cpuset="0x1"', 'cpuset="0x2"').encode(), "processing unit 1 is in two cores"),
        (PLAIN.replace('os_index="0"', 'os_index="-1"').encode(), "os_index '-1', not a number"),
        (PLAIN.replace('os_index="1"', 'os_index="4000000000"').encode(), "os_index '4000000000'"),
        (PLAIN.replace('cpuset="0x3"', 'cpuset="zebra"').encode(), "cpuset 'zebra', not a set"),
    ],
    ids=range(12),
)
def test_what_is_no_topology_is_refused_in_a_sentence(file: Path, data: bytes, said: str) -> None:
    assert said in _refused(file, data)


@pytest.mark.parametrize("seed", [1, 3])
def test_a_topology_that_breaks_off_anywhere_is_refused(file: Path, seed: int) -> None:
    data = topology(seed).text.rstrip().encode()
    for end in range(0, len(data), max(1, len(data) // 40)):
        assert "line" in _refused(file, data[:end])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('os_index="1"', 'os_index="1000000"'),
        ('type="Core"', 'type="Machine"'),
        ('type="PU"', 'type="Package"'),
        ('gp_index="11"', 'gp_index="10"'),
        ('os_index="1"', 'os_index="0"'),
        ('complete_nodeset="0x1"', 'complete_nodeset="0xf...f"'),
        ('nodeset="0x1"', 'nodeset="0x8"'),
    ],
)
def test_objects_that_contradict_each_other_are_read_or_refused_and_nothing_hangs(
    file: Path, old: str, new: str
) -> None:
    assert old in PLAIN
    for text in (PLAIN.replace(old, new, 1), PLAIN.replace(old, new)):
        try:
            machine = _read(file, text)
        except UsageError:
            continue
        assert {core.node for core in machine.cores} <= {node.number for node in machine.nodes}


def test_a_file_larger_than_any_topology_is_not_parsed(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hwloc_xml, "LARGEST", 1 << 20)
    assert "1 MiB" in _refused(file, PLAIN.encode() + b" " * (1 << 20))


def test_a_machine_read_from_a_file_survives_json(file: Path) -> None:
    machine = _read(file, topology(7).text)
    assert msgspec.json.decode(msgspec.json.encode(machine), type=Machine) == machine


PUBLIC = Path(os.environ.get("ELBOWROOM_PUBLIC_FILES", "")) / "hwloc"


@pytest.mark.skipif(
    "ELBOWROOM_PUBLIC_FILES" not in os.environ,
    reason="ELBOWROOM_PUBLIC_FILES names no folder of public files",
)
def test_public_topologies_are_read_and_planned_on() -> None:
    files = sorted(PUBLIC.glob("*.xml"))
    assert files
    for file in files:
        machine = simulated(read_topology_file(file))
        VirtualMachine(generic(machine), machine=machine)
        expansion = experiments.expand(load("model"), machine)
        validate(expansion.points, machine)
