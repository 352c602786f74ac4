"""Options of commands that measure: where to run, on which virtual machine, and changes to the plan."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click
import msgspec

from elbowroom.cli.options import REPEAT, RegistryChoice
from elbowroom.errors import UsageError
from elbowroom.experiments.plans import Overrides
from elbowroom.launch.launchers import DEFAULT
from elbowroom.launch.launchers import names as launcher_names
from elbowroom.models.registry import choices
from elbowroom.quantities import parse_cores
from elbowroom.verbs.declaration import Options, option

if TYPE_CHECKING:
    from elbowroom.measure.source import Where

_HOST = re.compile(r"[\w\[][\w.:\[\]-]*", re.ASCII)


def split_list(text: str, _field: str = "") -> tuple[str, ...]:
    """The parts of a list with commas."""
    return tuple(word.strip() for word in text.split(","))


def parse_hosts(text: str, field: str) -> tuple[str, ...]:
    """The hosts of a list; UsageError where a part is empty or no host's name."""
    hosts = split_list(text)
    if not all(_HOST.fullmatch(host) for host in hosts):
        raise UsageError("is not a list of hosts", field=field, value=text, hint="write names: a,b")
    return hosts


def _model_names() -> Sequence[str]:
    return choices()


MODEL = RegistryChoice(_model_names)
"""A kind of model: the type of options that name one."""


def out_option(kind: click.ParamType[Any], help: str, metavar: str = "FILE", **settings: Any) -> Any:
    """The file that a command writes."""
    return option(help, metavar, spelled="-o --out", type=kind, **settings)


def launcher_help() -> dict[str, str]:
    """Settings of --launcher in a command that has no page of its own on launchers."""
    return {"help": f"{', '.join(launcher_names())}; default: that of the allocation, else local."}


def hosts_help() -> dict[str, str]:
    """Settings of --hosts in a command that takes launchers without MPI, too."""
    taking = [name for name in launcher_names() if name != DEFAULT]
    return {"help": f"Hosts for {', '.join(taking)}."}


def seed_option(help: str = "Seed of the order of points and of the noise.", **settings: Any) -> Any:
    """The seed of a measurement."""
    return option(help, spelled="--seed", type=click.IntRange(min=0), **settings)


def timeout_option(help: str = "Time limit of one repetition.", **settings: Any) -> Any:
    """A limit of time, `patience` in Python (s)."""
    return option(help, "TIME", spelled="--timeout", **settings)


def node_option(help: str) -> Any:
    """A NUMA node; default: the first."""
    return option(help, "NODE", default=0, type=click.IntRange(min=0), show_default=False)


class Launching(Options):
    """How the programs of a measurement are started, and where."""

    launcher: str | None = option("As in `elbowroom run`.", "NAME")
    mpi: str | None = option("embedded (default), openmpi, mpich, or a prefix: /opt/openmpi.", "MPI")
    hosts: tuple[str, ...] = option("Hosts for mpiexec, srun, flux, pbs.", "A,B", parse=parse_hosts)
    hostfile: str | None = option("File of hosts for mpiexec, one per line.", "FILE")


class Virtual(Options):
    """The virtual machine that answers in place of hardware."""

    machine: str | None = option("Use a virtual machine: henri, FILE.toml or FILE.xml.", "MACHINE")
    noise: float | None = option("With --machine: relative noise of its values.", "SHARE")


class ProfiledProgram(Options):
    """What a user knows of a profiled program beside its profile, and how its gain is measured. `cores`: that
    compute on a node; `communication_threads`: other threads of a rank compute while its messages are
    pending; `verify`: a command with the choices in braces, whose wall time counts, or the seconds that
    `metric` matches.
    """

    name: str | None = None
    cores: int | None = option("Cores that compute on a node.", "N", type=click.IntRange(min=1))
    comp_node: int = node_option("NUMA node of the computation's data.")
    comm_node: int = node_option("NUMA node of the message buffers.")
    communication_threads: bool = option(
        "Other threads of a rank compute while its messages are pending.",
        spelled="--other-threads-compute",
        formerly="--communication-threads",
    )
    verify: str | None = option('Measure the gain: "./app --threads {cores}".', "CMD")
    metric: str | None = option(
        "With --verify: wall time (default), or a pattern that finds seconds in the output.",
        "wall|REGEX",
        only_with="verify",
        formerly="--number",
    )
    repetitions: int | None = option(
        "With --verify: pairs of runs; default 9.", "N", spelled="--repeat", type=REPEAT, only_with="verify"
    )
    patience: float | None = timeout_option("With --verify: time limit of one run.", only_with="verify")


def place(launching: Launching, virtual: Virtual | None = None, seed: int | None = None) -> Where:
    """Where answers come from, by the options of a command; `seed`: of the noise of a virtual machine."""
    from elbowroom.measure.source import Where

    answering = virtual or Virtual()
    return Where(
        launcher=launching.launcher,
        mpi=launching.mpi,
        hosts=tuple(launching.hosts),
        hostfile=launching.hostfile,
        machine=answering.machine,
        noise=answering.noise,
        seed=None if answering.machine is None else seed,
    )


class PlanChanges(Options):
    """What a command changes in the plan; None and empty leave it alone."""

    kernels: tuple[str, ...] | None = option(
        "Computing kernels: triad,prime; none: communication only.", "K,K", parse=split_list
    )
    comp_cores: tuple[int, ...] | None = option("Computing cores: 1-7.", "LIST", parse=parse_cores)
    comm_core: int | None = option("Core of the communication thread.", "CORE")
    comp_node: int | None = option("NUMA node of the computation's data.", "NODE")
    comm_node: int | None = option("NUMA node of the message buffers.", "NODE")
    sizes: tuple[int, ...] | None = option("Message sizes: 4,64KiB,64MB (MB = 1e6 B, MiB = 2^20 B).", "S,S")
    nodes: str | None = option("Numbers of nodes of a simulated cluster: 4,8,16.", "N,N")
    repeat: int | None = option("Number of repetitions of each point.", "N", type=REPEAT)
    starts: int | None = option("Start the program anew K times, each with its share of N.", "K", type=REPEAT)
    budget: float | None = option(
        "Time from the command to the report, without building: 60s, 2min. The most informative points "
        "come first.",
        "TIME",
    )
    quick: bool = option("Fewer points; plans gpu and gpu-overlap.")
    settings: tuple[str, ...] = option(
        "Set any key of the plan; may be repeated.", "KEY=VALUE", spelled="--set"
    )
    overrides: Overrides | None = None
    """All of these together; what is given apart replaces its part."""

    def as_overrides(self) -> Overrides:
        """The keys of the plan that are set; UsageError for what they cannot mean."""
        base = self.overrides or Overrides()
        settings = {**base.settings, **_parse_settings(self.settings)}
        if self.nodes is not None:
            if not all(word.isdecimal() and word.isascii() for word in split_list(self.nodes)):
                raise UsageError(
                    "is not a list of numbers", field="nodes", value=self.nodes, hint="for instance 4,8,16"
                )
            settings["nodes"] = self.nodes
        names = set(Overrides.__struct_fields__) - {"settings"}
        # Core 0 and node 0 are values, though equal to False.
        given = {
            name: value for name in names if (value := getattr(self, name)) is not None and value is not False
        }
        return msgspec.structs.replace(base, **given, settings=settings)


def _parse_settings(texts: Sequence[str]) -> dict[str, str]:
    """The values of KEY=VALUE by key."""
    settings = {}
    for setting in texts:
        key, equals, value = setting.partition("=")
        if not equals or not key.strip():
            raise UsageError(
                "is not KEY=VALUE", field="set", value=setting, hint="for instance --set window=0.2"
            )
        settings[key.strip()] = value.strip()
    return settings
