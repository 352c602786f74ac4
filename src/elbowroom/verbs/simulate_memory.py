"""`elbowroom simulate-memory`: a node request by request."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from elbowroom.cli.answer import Answer, command_line
from elbowroom.cli.console import print_json, print_wrapped
from elbowroom.cli.options import FIGURE
from elbowroom.cli.tables import new_table, print_table
from elbowroom.draw import files
from elbowroom.errors import UsageError
from elbowroom.models.load import Computing, Copy, Direction, Load, Messages, check_load
from elbowroom.quantities import format_size, number, parse_cores, parse_sizes, percent
from elbowroom.verbs.declaration import Verb, function_of, option
from elbowroom.verbs.model_tables import shape_line
from elbowroom.verbs.run_options import out_option
from elbowroom.virtual.request_node import PARAMETERS, SimulatedNode, changed

if TYPE_CHECKING:
    from elbowroom.draw.figure import Figure
    from elbowroom.virtual.requests import Pattern
    from elbowroom.virtual.simulated import (
        Latency,
        Simulated,
        SimulatedCurve,
        SimulatedRow,
        SimulationDocument,
    )

_ANYWHERE = {"machine", "settings", "seed", "parameters"}


def _parse_setting(word: str) -> tuple[str, str]:
    name, equals, value = word.partition("=")
    if not equals:
        raise UsageError(
            "is not KEY=VALUE", field="set", value=word, hint="for instance nic_write_credits=92"
        )
    return name.strip(), value.strip()


class Simulate(Verb):
    """Simulate every memory request (64 B) of a node: what waits where, and which side loses.

    Nothing is measured, and no arbiter prefers a side (`elbowroom help simulate`).
    """

    name = "simulate-memory"
    has_tables = True
    saves = True

    machine: str = option(
        "Virtual machine: henri (see `machine list`), FILE.toml, FILE.xml.",
        "MACHINE",
        required=True,
        positional=True,
    )
    cores: Sequence[int] | str | None = option("Numbers of computing cores: 1-18; default: all.", "LIST")
    comp_node: int = option("NUMA node of the computation's data; default 0.", "NODE", default=0)
    comm_node: int = option("NUMA node of the message buffers; default 0.", "NODE", default=0)
    kernel: Pattern = option(
        "Kernel: loads, stores, non-temporal stores (default), or loads and stores.",
        default="nt",
        type=click.Choice(["read", "write", "nt", "copy"]),
    )
    intensity: float = option("Arithmetic intensity; default 0.", "FLOP/B", default=0.0)
    direction: Direction = option(
        "Direction of the messages; default receive.",
        default="receive",
        type=click.Choice(["receive", "send", "both"]),
    )
    sizes: Sequence[int | None] | str = option(
        "Message sizes: 4KiB,64MB; default: one endless message.", "S,S"
    )
    comm_threads: int = option("Number of communication threads; default 1.", "K", default=1)
    far_thread: bool = option("Place the communication threads on the socket without the NIC.")
    copy: float | None = option("Bandwidth that an accelerator also writes to --comp-node.", "MB/s")
    settings: Iterable[tuple[str, str]] = option(
        "Set one of the --parameters.", "KEY=VALUE", spelled="--set", default=()
    )
    parameters: bool = option("List the parameters of the node with their sources.", in_python=False)
    seed: int = option("Seed of random numbers.", default=1, type=click.IntRange(min=0, max=2**32 - 1))
    out: Path | str | None = out_option(FIGURE, "Draw a figure (.png, .svg).", "FIGURE")

    def do(self) -> Simulated:
        """Both sides alone and together for each number of `cores` of the first socket (default: all) and
        each message size in bytes (none, or None: one endless message).

        `intensity` in flop/B, `copy` the MB/s that an accelerator would write to `comp_node` alone,
        `far_thread`: the communication threads are not on the NIC's socket. UsageError for what the machine
        has not; MachineError when the simulator cannot be built.
        """
        from elbowroom.launch import executables
        from elbowroom.virtual.requests import Requests, curve
        from elbowroom.virtual.simulated import Simulated, onset_of

        cores, sizes = self.cores, self.sizes
        if isinstance(cores, str):
            cores = parse_cores(cores, "cores")
        if isinstance(sizes, str):
            sizes = parse_sizes(sizes, "sizes")
        node = simulated_node(self.machine, self._settings())
        counts = _counts(node, cores)
        loads = [self._load(size) for size in sizes or (None,)]
        for load in loads:
            _check(node, load)
        truth = Requests(node, executables.simulate, seed=self.seed)
        curves = tuple(curve(truth, load, counts, pattern=self.kernel, far=self.far_thread) for load in loads)
        return Simulated(node, curves, tuple(onset_of(one) for one in curves))

    def _settings(self) -> list[tuple[str, str]]:
        return [_parse_setting(item) if isinstance(item, str) else item for item in self.settings]

    def _load(self, size: int | None) -> Load:
        """With one core; the curve has its own numbers of them."""
        return Load(
            computing=(Computing(socket=0, node=self.comp_node, count=1, intensity=self.intensity),),
            messages=Messages(
                node=self.comm_node, direction=self.direction, size=size, threads=self.comm_threads
            ),
            copies=() if self.copy is None else (Copy(node=self.comp_node, demand=self.copy),),
        )

    def execute(self, as_json: bool) -> int:
        """The simulation, or with --parameters those of the node."""
        if not self.parameters:
            return super().execute(as_json)
        for member in self.members:
            if member.name not in _ANYWHERE and member.given(self):
                raise UsageError(
                    "cannot be combined with --parameters",
                    field=member.name,
                    value=member.value(self),
                    hint="leave one of the two out",
                )
        from elbowroom.virtual.simulated import node_document

        node = simulated_node(self.machine, self._settings())
        if as_json:
            print_json(node_document(node))
        else:
            _print_parameters(node)
        return 0

    def document(self, result: Simulated) -> SimulationDocument:
        """The curves, each with what it shows."""
        from elbowroom.virtual.simulated import simulation_document

        return simulation_document(result)

    def print(self, result: Simulated) -> None:
        """A table for each message size, and who loses first."""
        from elbowroom.virtual.simulated import who

        print_wrapped(shape_line(result.node.shape), style="bold")
        print_wrapped("Simulated request by request: nothing is measured.")
        for curve, onset in zip(result.curves, result.findings, strict=True):
            size = curve.rows[0].size
            messages = "one endless message" if size is None else f"messages of {format_size(size)}"
            print()
            print_wrapped(
                f"Computations on node {curve.comp_node}, {messages} on node {curve.comm_node}", style="bold"
            )
            _print_curve(curve)
            if len(result.curves) > 1:
                print_wrapped(f"Loses first: {who(onset, curve)}.")
                print_wrapped(f"Most in use there: {onset.station}, {onset.use:.0%} of the time.")
        if self.out is not None:
            print()
            print_wrapped(f"figure: {self.out}")

    def answer(self, result: Simulated) -> Answer:
        """Who loses first, at which station, and how much at worst; the same node answers any plan."""
        from elbowroom.virtual.simulated import who

        curve, onset = max(
            zip(result.curves, result.findings, strict=True),
            key=lambda item: -min(item[1].comp_least, item[1].comm_least),
        )
        losses = (1 - min(1.0, onset.comp_least), 1 - min(1.0, onset.comm_least))
        first = who(onset, curve)
        first = f"{first[:1].upper()}{first[1:]}" if onset.first == "nobody" else f"Loses first: {first}"
        return Answer(
            f"{first}; at worst the computation loses {percent(losses[0], digits=0)}, "
            f"the communication {percent(losses[1], digits=0)}.",
            f"Most in use there is {onset.station}: {onset.use:.0%} of the time.",
            command_line("run", "model", "--machine", f"{self.machine.partition(':')[0]}:requests"),
        )


simulate = function_of(Simulate)


def simulated_node(machine: str, settings: Iterable[tuple[str, str]] = ()) -> SimulatedNode:
    """The node behind `machine:requests` (a name or a file), with other values of some parameters."""
    from elbowroom.launch import executables
    from elbowroom.launch.virtual import load
    from elbowroom.virtual.request_calibration import scaled

    return changed(scaled(load(machine).definition, executables.simulate), settings)


def simulated_figure(simulated: Simulated) -> Figure:
    """Bandwidths of the first curve over n."""
    from elbowroom.virtual.simulated import bandwidths

    return bandwidths(simulated.node.shape.name, simulated.curves[0])


def save(simulated: Simulated, path: Path) -> None:
    """Draws the first curve as .png or .svg."""
    files.save(simulated_figure(simulated), path)


def _counts(node: SimulatedNode, cores: Sequence[int] | None) -> tuple[int, ...]:
    most = node.shape.cores_first_socket
    if cores is None:
        return tuple(range(1, most + 1))
    if not cores:
        raise UsageError("names no number of cores", field="cores", hint=f"1 to {most}")
    for n in cores:
        if not 1 <= n <= most:
            raise UsageError(
                f"{node.shape.name} does not have that many cores on its first socket",
                field="cores",
                value=n,
                hint=f"1 to {most}",
            )
    return tuple(sorted(set(cores)))


_OPTION_OF = {
    # The option that sets a part of the load.
    "computing.node": "comp_node",
    "computing.intensity": "intensity",
    "messages.node": "comm_node",
    "messages.size": "sizes",
    "messages.threads": "comm_threads",
    "copies.demand": "copy",
}


def _check(node: SimulatedNode, load: Load) -> None:
    from elbowroom.virtual.requests import Moment, experiment

    try:
        check_load(node.shape, load)
        experiment(node, Moment(load.computing, copies=load.copies), 1)
    except UsageError as error:
        field = _OPTION_OF.get(error.field, error.field)
        raise UsageError(error.message, field=field, value=error.value, hint=error.hint) from error


def _print_parameters(node: SimulatedNode) -> None:
    print_wrapped(shape_line(node.shape), style="bold")
    print()
    table = new_table("parameter", ">value", "", "~what it is; where it comes from")
    for item in PARAMETERS:
        value = getattr(node, item.name)
        shown = value if isinstance(value, str) else "-" if value is None else number(value, 5)
        table.add_row(item.name, shown, item.unit, f"{item.text}; {item.source}")
    print_table(table)


def _print_curve(curve: SimulatedCurve) -> None:
    table = new_table(
        ">n",
        ">comp\nMB/s",
        ">\nkept",
        ">comm\nMB/s",
        ">\nkept",
        ">comp's lines\nmean, d9 ns",
        ">comm's lines\nmean, d9 ns",
        "~most in use",
    )
    for row in curve.rows:
        table.add_row(
            str(row.n),
            number(row.comp_together),
            f"{row.comp_kept:.2f}",
            number(row.comm_together),
            f"{row.comm_kept:.2f}",
            _latency(row.latency("computation")),
            _latency(row.latency("receive", "send")),
            _busiest(row),
        )
    print_table(table)


def _latency(latency: Latency | None) -> str:
    return "-" if latency is None else f"{latency.together_mean:.0f}, {latency.together_d9:.0f}"


def _busiest(row: SimulatedRow) -> str:
    name, use = max(row.stations.items(), key=lambda item: item[1])
    return f"{name.replace('controller of ', '')} {use:.0%}"
