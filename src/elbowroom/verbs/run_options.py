"""Options of commands that measure: where to run, on which virtual machine, and changes to the plan."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from elbowroom.cli.options import DURATION, REPEAT, RegistryChoice
from elbowroom.errors import UsageError
from elbowroom.launch.launchers import names as launcher_names
from elbowroom.quantities import parse_cores, parse_size
from elbowroom.verbs.declaration import Options, option

if TYPE_CHECKING:
    from elbowroom.experiments.plans import Overrides
    from elbowroom.measure.source import Where

_HOST = re.compile(r"[\w\[][\w.:\[\]-]*", re.ASCII)


def split_list(text: str) -> tuple[str, ...]:
    """The parts of a list with commas."""
    return tuple(word.strip() for word in text.split(","))


def parse_hosts(text: str) -> tuple[str, ...]:
    """The hosts of a list; UsageError where a part is empty or no host's name."""
    hosts = split_list(text)
    if not all(_HOST.fullmatch(host) for host in hosts):
        raise UsageError("is not a list of hosts", field="hosts", value=text, hint="write names: a,b")
    return hosts


def _model_names() -> Sequence[str]:
    from elbowroom.models.registry import choices

    return choices()


MODEL = RegistryChoice(_model_names)
"""A kind of model: the type of options that name one."""


def out_option(kind: click.ParamType[Any], help: str, metavar: str = "FILE", **settings: Any) -> Any:
    """The file that a command writes."""
    return option("-o", "--out", type=kind, metavar=metavar, help=help, **settings)


def launcher_help() -> dict[str, str]:
    """Settings of --launcher in a command that has no page of its own on launchers."""
    return {"help": f"{', '.join(launcher_names())}; default: that of the allocation, else local."}


class Launching(Options):
    """How the programs of a measurement are started, and where."""

    launcher: str | None = option(metavar="NAME", help="As in `elbowroom run`.")
    mpi: str | None = option(
        metavar="MPI", help="embedded (default), openmpi, mpich, or a prefix: /opt/openmpi."
    )
    hosts: tuple[str, ...] = option(
        default=(), parse=parse_hosts, metavar="A,B", help="Hosts for mpiexec, srun, flux."
    )
    hostfile: str | None = option(metavar="FILE", help="File of hosts for mpiexec, one per line.")


class Virtual(Options):
    """The virtual machine that answers in place of hardware."""

    machine: str | None = option(
        metavar="MACHINE", help="Use a virtual machine: henri, FILE.toml or FILE.xml."
    )
    noise: float | None = option(
        type=float, metavar="SHARE", help="With --machine: relative noise of its values."
    )


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


def seed_option(help: str = "Seed of the order of points and of the noise.", **settings: Any) -> Any:
    """The seed of a measurement."""
    return option("--seed", type=click.IntRange(min=0), help=help, **settings)


def timeout_option(help: str = "Time limit of one repetition.", **settings: Any) -> Any:
    """A limit of time in seconds, `patience` in Python."""
    limit = click.FloatRange(min=0, min_open=True)
    return option("--timeout", type=limit, metavar="SECONDS", help=help, **settings)


class PlanChanges(Options):
    """What a command changes in the plan; None and empty leave it alone."""

    kernels: tuple[str, ...] | None = option(
        parse=split_list, metavar="K,K", help="Computing kernels: triad,prime; none: communication only."
    )
    comp_cores: tuple[int, ...] | None = option(
        parse=parse_cores, metavar="LIST", help="Computing cores: 1-7."
    )
    comm_core: int | None = option(type=int, metavar="CORE", help="Core of the communication thread.")
    comp_node: int | None = option(type=int, metavar="NODE", help="NUMA node of the computation's data.")
    comm_node: int | None = option(type=int, metavar="NODE", help="NUMA node of the message buffers.")
    sizes: tuple[int, ...] | None = option(
        parse=lambda text: tuple(parse_size(size) for size in split_list(text)),
        metavar="S,S",
        help="Message sizes: 4,64KiB,64MB (MB = 1e6 B, MiB = 2^20 B).",
    )
    nodes: str | None = option(metavar="N,N", help="Numbers of nodes of a simulated cluster: 4,8,16.")
    repeat: int | None = option(type=REPEAT, metavar="N", help="Repetitions of each point.")
    starts: int | None = option(
        type=REPEAT, metavar="K", help="Start the program anew K times, each with its share of N."
    )
    budget: float | None = option(
        type=DURATION,
        metavar="TIME",
        help="Time from the command to the report: 60s, 2min. The most informative points come first.",
    )
    quick: bool = option(default=False, help="Fewer points; plans gpu and gpu-overlap.")
    settings: tuple[str, ...] = option(
        "--set", default=(), metavar="KEY=VALUE", help="Set any key of the plan; may be repeated."
    )
    overrides: Overrides | None = None
    """All of these together; what is given apart replaces its part."""

    def as_overrides(self) -> Overrides:
        """The keys of the plan that are set; UsageError for what they cannot mean."""
        import msgspec

        from elbowroom.experiments.plans import Overrides

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
