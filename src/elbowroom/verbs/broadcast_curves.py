"""`elbowroom broadcast curves`: figures 4.9 to 4.16 of the thesis on simulated clusters."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from elbowroom.cli.answer import Answer
from elbowroom.cli.console import chatter, print_wrapped
from elbowroom.cli.options import Output
from elbowroom.cli.tables import new_table, print_table
from elbowroom.draw import files
from elbowroom.errors import UsageError
from elbowroom.launch import build
from elbowroom.launch.planned_starts import PlannedStart
from elbowroom.quantities import number
from elbowroom.verbs.broadcasts import NetworkOptions
from elbowroom.verbs.declaration import Verb, argument, dry_run_option, included, option
from elbowroom.verbs.run_options import out_option

if TYPE_CHECKING:
    from elbowroom.broadcast.curves import CurveCase, CurvesDocument


class BroadcastCurves(Verb):
    """Draw a figure of simulated factorizations over the size of the matrix, or over the network.

    FIGURE is 4.9-64, 4.9-100, 4.10a, 4.10b, 4.11, 4.12, 4.14, 4.15 or 4.16 of Swartvagher's thesis, or
    bandwidth-, latency- or overhead- and cholesky or qr. Without options, the network is that of the thesis'
    cluster.
    """

    name = "broadcast curves"
    has_tables = True
    saves = True

    figure: str = argument(metavar="FIGURE")
    times: Sequence[str] = option(
        "Times of the kernels, a file for each size of tiles; default: measured.", "FILE", default=()
    )
    largest: int | None = option("Leave out matrices with more rows of tiles.", type=click.IntRange(min=1))
    links: NetworkOptions = included(NetworkOptions)
    out: Path | str | None = out_option(Output(".svg", ".png"), "Draw a picture.")
    dry_run: bool = dry_run_option()
    tell: Callable[[str], object] = chatter

    def do(self) -> CurvesDocument:
        """The rates of all lines, and the gains beside the thesis'."""
        from elbowroom.broadcast.curves import BLOCK, draw_curves
        from elbowroom.broadcast.factorizations import read_step_times
        from elbowroom.launch.executables import simulate_factorization, time_steps

        cases = self._cases()
        times = {read.block: read for read in map(read_step_times, self.times)}
        for block in sorted({BLOCK, *(case.block for case in cases)} - times.keys()):
            times[block] = time_steps(block)
        return draw_curves(self.figure, cases, times, simulate_factorization, self.tell, self.links.given())

    def _cases(self) -> Sequence[CurveCase]:
        from elbowroom.broadcast.curves import FIGURES

        if self.figure not in FIGURES:
            raise UsageError(
                "is not a figure", field="figure", value=self.figure, hint=f"give one of {', '.join(FIGURES)}"
            )
        cases = FIGURES[self.figure].cases
        kept = [case for case in cases if self.largest is None or case.rows <= self.largest]
        if not kept:
            least = min(case.rows for case in cases)
            raise UsageError(
                "leaves no matrix", field="largest", value=self.largest, hint=f"give at least {least}"
            )
        return kept

    def planned_starts(self) -> Iterator[PlannedStart]:
        """The kernels whose times are not given, and the simulator."""
        from elbowroom.broadcast.curves import BLOCK
        from elbowroom.broadcast.factorizations import read_step_times
        from elbowroom.launch.executables import FIRST_GUESS, times_command

        given = {read_step_times(file).block for file in self.times}
        for block in sorted({BLOCK, *(case.block for case in self._cases())} - given):
            what = f"the kernels of a factorization on one core, tiles of {block}; the time is a first guess"
            command = shlex.join(times_command(block))
            yield PlannedStart(what=what, commands=(command,), seconds=FIRST_GUESS)
        what = "the simulator of task graphs, for each point; it measures nothing"
        yield PlannedStart(what=what, commands=(str(build.taskflow_simulator()),))

    def print(self, result: CurvesDocument) -> None:
        """A row for each point."""
        print_wrapped(f"{result.title}; simulated", style="bold")
        table = new_table("x", "line", ">s", ">Tflop/s", ">busy", ">gain")
        for point in result.points:
            table.add_row(
                f"{point.x}", point.line, number(point.seconds), number(point.Tflop_s),
                f"{point.busy:.0%}", "" if point.gain is None else f"{point.gain:.2f}",
            )  # fmt: skip
        print_table(table)

    def answer(self, result: CurvesDocument) -> Answer:
        """The gains beside the thesis'."""
        best = max(result.points, key=lambda point: point.gain or 0.0)
        compared = "; ".join(
            f"{gain.line}: {gain.gain:.2f} times, {gain.thesis:.2f} in the thesis ({gain.difference:+.0%})"
            for gain in result.gains
        )
        return Answer(
            f"The largest gain is {best.gain:.2f} times: {best.line}, at {best.x} (simulated).",
            f"{compared}." if compared else "The thesis states no gain of this figure.",
            self.again(out=f"{result.figure}.svg"),
        )


def save(document: CurvesDocument, path: Path) -> None:
    """Draws curves as .svg or .png."""
    from elbowroom.broadcast.curves import curves_figure

    files.save(curves_figure(document), path)
