"""Machines made of a few facts, and the topology that describes them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from elbowroom.machine.hwloc import read_topology
from elbowroom.machine.layout import regular_machine, topology_xml
from elbowroom.machine.topology import Nic

CARD = Nic(name="mlx5_0", kind="openfabrics", node=2, pci="0000:81:00.0", link="15.8 GB/s")
SUBNUMA: dict[str, Any] = {
    "name": "made <up>",
    "model": "M & co",
    "cores_per_socket": 18,
    "numa_per_socket": 2,
    "sockets": 2,
    "memory_per_node": 24_000_000_000,
    "caches": [(1, 32 << 10, 1), (2, 1 << 20, 1), (3, 25_952_256, 18)],
}


def test_cores_and_nodes_are_numbered_socket_by_socket() -> None:
    machine = regular_machine(**SUBNUMA)
    assert [node.cores[0] for node in machine.nodes] == [0, 9, 18, 27]
    assert [node.package for node in machine.nodes] == [0, 0, 1, 1]
    assert len(machine.allowed) == 36


def test_hardware_threads_follow_those_of_the_machine_or_of_the_socket() -> None:
    shape: dict[str, Any] = {
        "name": "m",
        "model": "",
        "cores_per_socket": 4,
        "numa_per_socket": 1,
        "sockets": 2,
    }
    assert regular_machine(**shape, threads_per_core=2).cores[5].pus == (5, 13)
    assert regular_machine(**shape, threads_per_core=4, siblings="socket").cores[5].pus == (17, 21, 25, 29)


@pytest.mark.parametrize(
    "more",
    [
        {"nic": CARD, "virtual": True},
        {"threads_per_core": 2, "caches": [(3, 16 << 20, 4)]},
        {"numa_per_socket": 1, "nic_node": 1, "threads_per_core": 4, "siblings": "socket"},
        {"sockets": 1, "numa_per_socket": 1, "memory_per_node": 0, "caches": ()},
    ],
)
def test_its_topology_reads_back_as_the_same_machine(more: dict[str, Any]) -> None:
    machine = regular_machine(**(SUBNUMA | more))
    assert read_topology(topology_xml(machine)) == machine


@pytest.mark.skipif(shutil.which("hwloc-info") is None, reason="hwloc's own tools are not installed")
def test_hwloc_loads_its_topology(tmp_path: Path) -> None:
    file = tmp_path / "made.xml"
    file.write_text(topology_xml(regular_machine(**SUBNUMA, nic=CARD)), encoding="utf-8")
    done = subprocess.run(["hwloc-info", "-i", str(file)], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    for count, kind in ((36, "Core"), (4, "NUMANode"), (2, "L3Cache"), (1, "PCIDev"), (1, "OSDev")):
        assert any(f" {count} {kind} " in line for line in done.stdout.splitlines()), kind
