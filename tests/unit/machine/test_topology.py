"""Reading hwloc's XML into the plain machine."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import msgspec
import pytest

from elbowroom.errors import UsageError
from elbowroom.machine.hwloc import read_topology
from elbowroom.machine.topology import Machine, Nic, here

MACHINES = Path(__file__).parents[3] / "machines"
TWO_SOCKETS = MACHINES / "example-2socket.xml"
SMT = MACHINES / "example-smt.xml"

NO_NODE = """<?xml version="1.0"?>
<topology version="2.0">
  <object type="Machine" os_index="0" cpuset="0x3" nodeset="0x1" allowed_cpuset="0x2">
    <object type="NUMANode" os_index="0" cpuset="0x3" nodeset="0x1" local_memory="1000"/>
    <object type="PU" os_index="0" cpuset="0x1" nodeset="0x1"/>
    <object type="PU" os_index="1" cpuset="0x2" nodeset="0x1"/>
  </object>
</topology>
"""


def _changed(path: Path, old: str, new: str) -> str:
    text = path.read_text(encoding="utf-8")
    assert old in text
    return text.replace(old, new, 1)


def _failure(source: Path | str) -> str:
    with pytest.raises(UsageError) as caught:
        read_topology(source)
    assert caught.value.hint
    return caught.value.sentence()


@pytest.fixture
def two_sockets() -> Machine:
    return read_topology(TWO_SOCKETS)


def test_sockets_nodes_and_cores_are_counted_and_joined(two_sockets: Machine) -> None:
    assert two_sockets.packages == 2
    assert [node.number for node in two_sockets.nodes] == [0, 1, 2, 3]
    assert [node.package for node in two_sockets.nodes] == [0, 0, 1, 1]
    assert two_sockets.nodes[2].cores == tuple(range(18, 27))
    assert {core.node for core in two_sockets.cores if core.package == 1} == {2, 3}
    assert two_sockets.memory == 4 * 24_000_000_000
    assert two_sockets.model == "Example processor with 18 cores"


def test_the_last_level_cache_is_shared_by_the_cores_of_its_node(two_sockets: Machine) -> None:
    assert two_sockets.last_level_cache == 14_417_920
    assert [cache.cores for cache in two_sockets.caches] == [node.cores for node in two_sockets.nodes]


def test_network_devices_have_the_node_they_are_attached_to_and_their_link(two_sockets: Machine) -> None:
    assert two_sockets.nics == (
        Nic(name="ib0", kind="network", node=1, pci="0000:5e:00.0", link="15.8 GB/s"),
        Nic(name="mlx5_0", kind="openfabrics", node=1, pci="0000:5e:00.0", link="15.8 GB/s"),
    )


def test_a_network_card_without_a_driver_is_named_by_its_address() -> None:
    served = TWO_SOCKETS.read_text(encoding="utf-8")
    text = re.sub(r"<object type=\"OSDev\".*?</object>", "", served, flags=re.S)
    assert [(nic.name, nic.node) for nic in read_topology(text).nics] == [("0000:5e:00.0", 1)]


def test_a_device_attached_to_several_nodes_has_no_node() -> None:
    text = TWO_SOCKETS.read_text(encoding="utf-8")
    start = text.index('<object type="Bridge" gp_index="1001"')
    bridge = text[start : text.index("    </object>\n    <object", start)]
    bridge = bridge[: bridge.rindex("</object>")]
    moved = text.replace(bridge, "", 1)
    first_package = moved.index('<object type="Package" os_index="1"')
    moved = moved[:first_package] + bridge + moved[first_package:]
    nics = read_topology(moved).nics
    assert [nic.name for nic in nics] == ["ib0", "mlx5_0"]
    assert [nic.node for nic in nics] == [None, None]


def test_with_hyperthreads_a_core_is_named_by_its_first_processing_unit() -> None:
    machine = read_topology(SMT)
    assert [core.number for core in machine.cores] == [0, 1, 2, 3]
    assert [core.pus for core in machine.cores] == [(0, 4), (1, 5), (2, 6), (3, 7)]
    assert machine.allowed == (0, 1, 2, 3)


def test_memory_beside_a_group_of_caches_finds_its_cores() -> None:
    machine = read_topology(SMT)
    assert [node.cores for node in machine.nodes] == [(0, 1), (2, 3)]


def test_processing_units_stand_for_cores_that_hwloc_does_not_see() -> None:
    machine = read_topology(NO_NODE)
    assert [core.number for core in machine.cores] == [0, 1]
    assert machine.packages == 1
    assert machine.last_level_cache == 0


def test_cores_outside_the_allowed_set_are_known_but_not_allowed() -> None:
    machine = read_topology(NO_NODE)
    assert machine.allowed == (1,)
    assert len(machine.cores) == 2


def test_the_affinity_narrows_what_is_allowed() -> None:
    machine = read_topology(SMT)
    assert here(machine, allowed={1, 2, 6, 7}).allowed == (1, 2)
    assert here(machine, allowed=set()).allowed == ()


def test_memory_the_kernel_has_and_hwloc_misses_is_the_only_nodes() -> None:
    grown = here(read_topology(NO_NODE), allowed={1}, memory=5000)
    assert grown.memory == 5000
    assert grown.nodes[0].memory == 5000
    assert here(read_topology(SMT), memory=10**15).memory == read_topology(SMT).memory


def test_bitmaps_of_more_than_32_units_are_read() -> None:
    text = _changed(SMT, 'cpuset="0x00000022" complete', 'cpuset="0x00000004,,0x00000002" complete')
    assert read_topology(text).cores[1].pus == (1, 66)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    sentence = _failure(tmp_path / "absent.xml")
    assert "absent.xml" in sentence
    assert "No such file" in sentence


@pytest.mark.parametrize("keep", [0.1, 0.5, 0.99])
def test_a_torn_file_is_named_with_the_line(tmp_path: Path, keep: float) -> None:
    text = TWO_SOCKETS.read_text(encoding="utf-8")
    torn = text[: int(len(text) * keep)]
    file = tmp_path / "torn.xml"
    file.write_text(torn, encoding="utf-8")
    sentence = _failure(file)
    assert "torn.xml" in sentence
    line = re.search(r"line (\d+)", sentence)
    assert line is not None
    assert abs(int(line.group(1)) - len(torn.splitlines())) <= 1


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('version="2.0"', 'version="3.0"', "hwloc 3.0"),
        (' version="2.0"', "", "hwloc 1"),
        ('cpuset="0x00000011"', 'cpuset="0xf...f"', "0xf...f"),
        ('cpuset="0x00000011"', 'cpuset="zebra"', "zebra"),
        ('local_memory="16000000000"', 'local_memory="much"', "much"),
        ('cache_size="16777216"', 'cache_size="-1"', "cache_size"),
        ('type="Machine"', 'type="Toaster"', "no machine"),
    ],
)
def test_a_damaged_description_is_refused_with_what_is_wrong(old: str, new: str, said: str) -> None:
    sentence = _failure(_changed(SMT, old, new))
    assert said in sentence
    assert re.search(r"line \d+", sentence)


def test_other_xml_is_not_a_topology() -> None:
    assert "<html>" in _failure("<html></html>")


def test_a_machine_without_nodes_or_cores_is_refused() -> None:
    assert "no NUMA nodes" in _failure(re.sub(r"<object type=\"NUMANode\".*?/>", "", NO_NODE))
    assert "no cores" in _failure(re.sub(r"<object type=\"PU\".*?/>", "", NO_NODE))


def test_the_machine_is_plain_data_that_survives_json(two_sockets: Machine) -> None:
    assert msgspec.json.decode(msgspec.json.encode(two_sockets), type=Machine) == two_sockets


@pytest.mark.skipif(shutil.which("lstopo-no-graphics") is None, reason="lstopo is not installed")
@pytest.mark.parametrize(
    "synthetic", ["", "pack:2 numa:2 l3:1 core:9 pu:1", "pack:2 die:2 numa:1 l2:2 core:2 pu:2", "numa:3 pu:2"]
)
def test_what_lstopo_writes_here_is_read_with_as_many_units(synthetic: str) -> None:
    command = ["lstopo-no-graphics", *(["-i", synthetic] if synthetic else []), "--of", "xml"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    machine = read_topology(text)
    assert sum(len(core.pus) for core in machine.cores) == text.count('type="PU"')
    assert len(machine.nodes) == text.count('type="NUMANode"')
    assert {core.node for core in machine.cores} <= {node.number for node in machine.nodes}
    assert machine.allowed
