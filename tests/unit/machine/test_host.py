"""What the kernel's files say of a host."""

from __future__ import annotations

from pathlib import Path

from elbowroom.machine.identity import HostIdentity, node_distances, read_host


def cpu(root: Path, number: int, *, core: int, socket: int, cache: tuple[str, str, str]) -> None:
    folder = root / f"sys/devices/system/cpu/cpu{number}"
    size, ways, shared = cache
    texts = {
        "topology/core_id": str(core),
        "topology/physical_package_id": str(socket),
        "cache/index0/level": "1",
        "cache/index0/size": "32K",
        "cache/index3/level": "3",
        "cache/index3/size": size,
        "cache/index3/ways_of_associativity": ways,
        "cache/index3/shared_cpu_list": shared,
    }
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"{text}\n")


def test_threads_of_a_core_count_once_and_each_cache_too(tmp_path: Path) -> None:
    for number in range(8):
        socket = number // 2 % 2
        cpu(tmp_path, number, core=number % 4, socket=socket, cache=("32768K", "16", f"socket {socket}"))
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cpuinfo").write_text("processor\t: 0\nmodel name\t: Test CPU\n")
    assert read_host(tmp_path) == HostIdentity(
        cpu="Test CPU", cores=4, sockets=2, cache=32 << 20, ways=16, caches=2
    )


def test_an_empty_tree_says_nothing(tmp_path: Path) -> None:
    assert read_host(tmp_path) == HostIdentity()


def test_distances_of_nodes_are_those_that_the_firmware_states(tmp_path: Path) -> None:
    for number, line in enumerate(("10 12 21 21", "12 10 21 21", "21 21 10 12", "21 21 12 10")):
        folder = tmp_path / f"sys/devices/system/node/node{number}"
        folder.mkdir(parents=True)
        (folder / "distance").write_text(f"{line}\n")
    assert node_distances(tmp_path) == (12, 21)


def test_one_node_has_no_distances(tmp_path: Path) -> None:
    folder = tmp_path / "sys/devices/system/node/node0"
    folder.mkdir(parents=True)
    (folder / "distance").write_text("10\n")
    assert node_distances(tmp_path) == ()
