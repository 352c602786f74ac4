"""What defines a virtual machine: names, TOML, topologies; and every way in which that can be wrong."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from elbowroom.errors import UsageError
from elbowroom.launch.virtual import load
from elbowroom.machine.hwloc import read_topology
from elbowroom.machine.layout import topology_xml
from elbowroom.models import published
from elbowroom.models.curves import Situation
from elbowroom.virtual import machines
from elbowroom.virtual.answers import VirtualMachine
from elbowroom.virtual.definition import decode, encode
from elbowroom.virtual.machines import GENERIC, machine_of, of_name, truth_of

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "machines" / "example-2socket.xml"

MINE = """
name = "mine"
cores_per_socket = 8
memory_gb = 64

[local]
core = 5000
memory = 30000
nic = 12000
kept = 0.8

[remote]
core = 4800
memory = 15000
nic = 11500
kept = 0.6
"""


@pytest.mark.parametrize("name", published.names())
def test_a_published_machine_has_the_published_shape(name: str) -> None:
    known, machine = published.load(name), machine_of(of_name(name))
    assert len(machine.cores) == known.cores
    assert machine.packages == known.sockets
    assert len(machine.nodes) == known.sockets * known.numa_per_socket
    assert [nic.node for nic in machine.nics] == [known.nic_node]
    assert machine.virtual
    assert machine.hosts == 2


@pytest.mark.parametrize("name", published.names())
def test_its_topology_is_marked_as_virtual_and_reads_back(name: str) -> None:
    machine = machine_of(of_name(name))
    read = read_topology(topology_xml(machine))
    assert msgspec.structs.replace(read, hosts=2, refused=machine.refused) == machine


@pytest.mark.parametrize("name", published.names())
def test_a_definition_survives_being_written_as_toml(name: str) -> None:
    assert decode(encode(of_name(name)), "x.toml") == of_name(name)


def test_names_with_quotes_survive_too() -> None:
    odd = msgspec.structs.replace(of_name("henri"), name='a "b" \\ c')
    assert decode(encode(odd), "x.toml") == odd


def test_a_name_may_choose_the_truth() -> None:
    assert load("henri").definition.truth == "published"
    assert load("henri:credits").definition.truth == "credits"
    assert load("henri:published").definition == load("henri").definition


def test_four_numbers_a_side_are_reached_by_the_truth() -> None:
    truth = truth_of(decode(MINE, "mine.toml"))
    for node, core, memory, nic, kept in ((0, 5000, 30000, 12000, 0.8), (1, 4800, 15000, 11500, 0.6)):
        one = truth.streams(Situation(comp_node=node, comm_node=node, n=1))
        every = truth.streams(Situation(comp_node=node, comm_node=node, n=8))
        assert one[:2] == pytest.approx((core, nic))
        assert every[0] == pytest.approx(memory)
        assert every[3] == pytest.approx(kept * nic)
        assert sum(every[2:]) == pytest.approx(memory)


def test_four_numbers_without_contention_are_the_sum_of_both() -> None:
    text = MINE.replace("memory = 30000", "memory = 90000")
    streams = truth_of(decode(text, "mine.toml")).streams(Situation(comp_node=0, comm_node=0, n=8))
    assert streams == pytest.approx((40000, 12000, 40000, 12000))


def test_both_sockets_change_the_published_curves_as_they_change_the_network() -> None:
    both, network = truth_of(of_name("henri")), truth_of(load("henri:credits").definition)
    one, two = (Situation(comp_node=0, comm_node=0, n=18, n_other=other) for other in (0, 17))
    for first, second, less, more in zip(
        both.streams(one), both.streams(two), network.streams(one), network.streams(two), strict=True
    ):
        assert second / first == pytest.approx(more / less)


def test_a_topology_without_bandwidths_gets_generic_ones_and_says_so() -> None:
    found = load(str(EXAMPLE))
    assert found.definition.origin == GENERIC
    assert found.definition.truth == "credits"
    assert found.machine is not None
    assert found.machine.virtual
    assert [core.number for core in found.machine.cores] == [
        core.number for core in read_topology(EXAMPLE).cores
    ]


def test_bandwidths_beside_a_topology_are_used(tmp_path: Path) -> None:
    definition = encode(of_name("henrisubnuma"))
    (tmp_path / "mine.xml").write_text(EXAMPLE.read_text())
    (tmp_path / "mine.toml").write_text(definition)
    assert load(str(tmp_path / "mine.xml")).definition == decode(definition, "mine.toml")


def test_bandwidths_of_another_shape_beside_a_topology_are_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.xml").write_text(EXAMPLE.read_text())
    (tmp_path / "mine.toml").write_text(encode(of_name("henri")))
    with pytest.raises(UsageError, match=r"numa_per_socket 1: does not fit .*which has 2"):
        load(str(tmp_path / "mine.xml"))


def test_sockets_that_are_not_alike_keep_their_own_cores_and_nodes() -> None:
    machine = read_topology(EXAMPLE)
    cores = len(machine.cores)
    definition = machines.generic(msgspec.structs.replace(machine, cores=machine.cores[:-1]))
    assert definition.layout == ((cores // 2, 2), (cores // 2 - 1, 2))
    assert definition.shape.cores == cores - 1
    assert decode(encode(definition), "mine.toml") == definition
    assert machines.machine_of(definition).sockets == ((0,), (1,))


def test_the_documented_machine_is_one() -> None:
    text = (ROOT / "docs" / "reference" / "machine-file.md").read_text(encoding="utf-8")
    found = re.search(r"^```toml\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert found is not None
    documented = decode(found[1], "mine.toml")
    required = [line for line in found[1].splitlines() if "required" in line and "=" in line]
    sides = found[1][found[1].index("[local]") :]
    shortest = "\n".join(['name = "mine"', *required, sides])
    left_out = decode(shortest, "mine.toml")
    assert msgspec.structs.replace(left_out, processor=documented.processor) == documented


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("hneri", "machine 'hneri': no such virtual machine; did you mean 'henri'?"),
        ("henri:credit", "no such truth; did you mean 'credits'?"),
        ("none/mine.toml", "cannot be read"),
        ("none/mine.xml", "cannot be read"),
    ],
)
def test_what_is_no_machine_is_refused_with_what_is_near(spec: str, said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)):
        load(spec)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('name = "mine"', "", "name: is missing in mine.toml"),
        ("memory_gb = 64", "", "memory_gb: is missing"),
        ("cores_per_socket = 8", "cores_per_socket = 0", "cores_per_socket 0: expected int >= 1"),
        ("cores_per_socket = 8", 'cores_per_socket = "8"', "cores_per_socket '8': expected int"),
        ("memory_gb = 64", "memory_gb = 64\nsockets = 5000", "sockets 5000: expected int <= 4096"),
        ("memory_gb = 64", "memory_gb = 64\nlayout = [[8, 1]]", "layout [[8, 1]]: does not list 2 sockets"),
        ("memory_gb = 64", "memory_gb = 64\nlayout = [[4, 1], [8, 1]]", "layout [4, 1]: begins with another"),
        (
            "memory_gb = 64",
            "memory_gb = 64\nnic_node = 2",
            "nic_node 2: is not a node of this machine; nodes: 0-1",
        ),
        (
            "memory_gb = 64",
            "memory_gb = 64\nnuma_per_socket = 9",
            "numa_per_socket 9: is more than there are",
        ),
        ("memory_gb = 64", "memory_gb = 64\ncolour = 1", "colour 1: no such key of a machine"),
        ("memory_gb = 64", "memory_gb = 64\nsockets = 1", "remote: a machine of one socket"),
        ("kept = 0.8", "kept = 1.2", "local.kept 1.2: expected float <= 1"),
        ("kept = 0.8", "", "local.kept: is missing"),
        ("kept = 0.6", "kept = 0.6\nclock = 3", "remote.clock '3': no such key of a side"),
        ("core = 4800", "core = -1", "remote.core -1: expected float > 0"),
        ("memory_gb = 64", "memory_gb = = 64", "not a TOML file"),
        ("memory_gb = 64", 'memory_gb = 64\ntruth = "real"', "truth 'real': invalid enum value"),
    ],
)
def test_a_damaged_machine_is_refused_with_its_field(old: str, new: str, said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)) as refused:
        decode(MINE.replace(old, new, 1), "mine.toml")
    assert refused.value.hint


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("t_par_max", -1.0, "local.t_par_max -1.0: is not a bandwidth"),
        ("b_comm_seq", float("inf"), "local.b_comm_seq inf: is out of range"),
        ("n_seq_max", 19, "local.n_seq_max 19: is not a number of cores; 1 to 18"),
        ("alpha", 0.0, "local.alpha 0.0: is not a share that is kept"),
        (
            "t_par_max2",
            10000.0,
            "local.alpha 0.915: of 11481.1 MB/s leaves computations nothing of the 10000",
        ),
    ],
)
def test_parameters_of_no_machine_are_refused(name: str, value: float, said: str) -> None:
    henri = of_name("henri")
    broken = msgspec.structs.replace(henri, local=msgspec.structs.replace(henri.local, **{name: value}))
    with pytest.raises(UsageError, match=re.escape(said)):
        decode(encode(broken), "mine.toml")


@pytest.mark.parametrize("noise", [-1.0, 0.5])
def test_noise_that_is_no_standard_deviation_is_refused(noise: float) -> None:
    with pytest.raises(UsageError, match="noise"):
        VirtualMachine(of_name("henri"), noise=noise)
