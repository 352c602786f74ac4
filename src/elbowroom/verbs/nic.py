"""`elbowroom nic`: programs behind an emulated NIC (docs/reference/nic.md); its options in other commands."""

from __future__ import annotations

from collections.abc import Iterator

import click

from elbowroom.errors import UsageError
from elbowroom.launch.nic import NicSettings, check, prepare, run_behind_nic
from elbowroom.launch.planned_starts import PlannedStart
from elbowroom.quantities import parse_bandwidth, parse_cores
from elbowroom.verbs.declaration import Options, Verb, command_argument, dry_run_option, option

_RANKS, _NODES, _NAME = (
    "Ranks on each emulated node; default: 1.",
    "Emulated nodes of this job's ranks; default: 0,1,2 …",
    "Jobs with the same name share the nodes; by default a job has its own.",
)
_MOST = click.IntRange(1, 1024)


class EmulatedNicOptions(Options):
    """The emulated NIC behind which a command runs programs, if any."""

    nic: NicSettings | float | str | None = option("Run behind an emulated NIC: 50MB/s (help nic).", "RATE")
    ranks_per_node: int | None = option(_RANKS, "N", type=_MOST, in_python=False)
    nic_nodes: str | None = option(_NODES, "LIST", in_python=False)
    nic_name: str | None = option(_NAME, "NAME", in_python=False)

    def settings(self) -> NicSettings | None:
        """The NIC that the options describe; UsageError for values that it cannot have."""
        if isinstance(self.nic, str | float):
            return _settings(self.nic, self.ranks_per_node, self.nic_nodes, self.nic_name)
        for field in ("ranks_per_node", "nic_nodes", "nic_name"):
            if self.nic is None and getattr(self, field) is not None:
                raise UsageError(
                    "is only valid with an emulated NIC",
                    field=field,
                    value=getattr(self, field),
                    hint="give --nic 50MB/s",
                )
        return self.nic


def _settings(
    bandwidth: float | str, ranks_per_node: int | None, nodes: str | None, name: str | None
) -> NicSettings:
    settings = NicSettings(
        bandwidth=parse_bandwidth(bandwidth, "nic"),
        ranks_per_node=ranks_per_node or 1,
        nodes=() if nodes is None else parse_cores(nodes, "nic_nodes"),
        **({} if name is None else {"name": name}),
    )
    check(settings)
    return settings


class NicRun(Verb):
    """Run CMD with its ranks on emulated nodes.

    Messages between nodes share each node's NIC; messages inside a node are not limited. All ranks are on
    this host and communicate over TCP. Output and exit code are those of CMD.
    """

    name = "nic run"
    has_document = False

    command: tuple[str, ...] = command_argument()
    nic: float = option(
        "Bandwidth of each node's NIC in each direction: 50MB/s.",
        "RATE",
        required=True,
        formerly="--bandwidth",
    )
    ranks_per_node: int | None = option(_RANKS, "N", type=_MOST)
    nic_nodes: str | None = option(_NODES, "LIST", formerly="--nodes")
    nic_name: str | None = option(_NAME, "NAME", formerly="--name")
    dry_run: bool = dry_run_option()

    def do(self) -> int:
        """The exit code of the program."""
        return run_behind_nic(self.command, self._settings())

    def _settings(self) -> NicSettings:
        return _settings(self.nic, self.ranks_per_node, self.nic_nodes, self.nic_name)

    def planned_starts(self) -> Iterator[PlannedStart]:
        """The program."""
        line = prepare(self.command, self._settings()).line()
        yield PlannedStart(what="the program, behind the NIC", commands=(line,))

    def print(self, result: int) -> None:
        """Nothing: the output is the program's."""

    def exit_code(self, result: int) -> int:
        """That of the program."""
        return result
