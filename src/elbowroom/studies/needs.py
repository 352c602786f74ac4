"""What statements of papers cannot be judged without: the reason why a machine lacks it, else nothing."""

from __future__ import annotations

from elbowroom.machine.topology import Machine
from elbowroom.plan.placement import nic_node, shares_core, usable
from elbowroom.studies.study import Need


def network(machine: Machine) -> str:
    """A second host: the papers send over a network, and a core copies messages within a host."""
    if machine.hosts > 1:
        return ""
    return "one host: its cores copy the messages, and the paper sends them over a network"


def one_host(machine: Machine) -> str:
    """Both processes on one host with one clock, as one-way times need."""
    if machine.virtual or machine.hosts == 1:
        return ""
    return f"one-way times need one clock, which {machine.hosts} hosts do not share (--launcher local)"


def two_nodes(machine: Machine) -> str:
    """NUMA nodes near the NIC and far from it."""
    if len(machine.nodes) < 2:
        return "one NUMA node: nothing is far from the NIC"
    return "" if nic_node(machine) is not None else "the NUMA node of the NIC is unknown"


def two_sockets(machine: Machine) -> str:
    """A process for each of two sockets."""
    return "" if machine.packages > 1 else "one socket"


def computing_cores(count: int) -> Need:
    """At least so many computing cores beside the communication core."""

    def need(machine: Machine) -> str:
        free = len(usable(machine)) - (1 if machine.hosts > 1 or shares_core(machine) else 2)
        if free >= count:
            return ""
        cores = "computing core" if free == 1 else "computing cores"
        return f"{max(0, free)} {cores} here; at least {count} are needed"

    return need


def core_frequencies(machine: Machine) -> str:
    """The permission to hold core frequencies constant."""
    if "core_frequency" in machine.permitted:
        return ""
    return machine.refused.get("core_frequency", "core frequencies cannot be held constant on this machine")


def uncore_frequencies(machine: Machine) -> str:
    """The permission to hold uncore frequencies constant."""
    if "uncore_frequency" in machine.permitted:
        return ""
    return machine.refused.get(
        "uncore_frequency", "uncore frequencies cannot be held constant on this machine"
    )


def some_frequencies(machine: Machine) -> str:
    """The permission to hold core or uncore frequencies constant."""
    return core_frequencies(machine) if uncore_frequencies(machine) else ""


def scales(machine: Machine) -> tuple[int, ...]:
    """Numbers of hosts that strong scaling is measured on: powers of two, and all hosts; a virtual cluster
    has its own numbers of nodes in one run.
    """
    if machine.virtual or machine.hosts < 2:
        return (machine.hosts,)
    powers = [1 << power for power in range(1, machine.hosts.bit_length())]
    return tuple(sorted({*(count for count in powers if count <= machine.hosts), machine.hosts}))


def several_scales(machine: Machine) -> str:
    """More than one number of hosts to compare."""
    if machine.virtual or len(scales(machine)) > 1:
        return ""
    hosts = "one host" if machine.hosts == 1 else f"{machine.hosts} hosts"
    return f"{hosts}: two numbers of nodes are compared, so at least three hosts are needed"


def omni_path(machine: Machine) -> str:
    """The network of the paper's cluster bora."""
    if any(nic.name.startswith("hfi") for nic in machine.nics):
        return ""
    return "no Omni-Path network; the paper saw this on bora and not on InfiniBand"


def bystanders(machine: Machine) -> str:
    """A core for a process that does not communicate."""
    free = len(usable(machine)) - 2
    return "" if free > 0 else "two cores: sender and receiver need both"


def not_of_law(machine: Machine) -> str:
    """A machine whose values are not computed from the model that is tested."""
    if not machine.virtual:
        return ""
    return "a virtual machine answers from models, and a model cannot confirm itself"
