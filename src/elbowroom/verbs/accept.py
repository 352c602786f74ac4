"""`elbowroom accept`: which nodes of a site are slow, in what, and why."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from elbowroom.cli.answer import Answer, command_line
from elbowroom.cli.console import print_wrapped
from elbowroom.cli.options import Output
from elbowroom.cli.tables import new_table, print_table
from elbowroom.errors import UsageError
from elbowroom.files import write_atomically
from elbowroom.quantities import number, percent, span
from elbowroom.verbs.declaration import Verb, function_of, option

if TYPE_CHECKING:
    from elbowroom.accept.document import AcceptanceDocument

_WORST = 5
"""Suspects that the first screen shows with their evidence."""


class AcceptSite(Verb):
    """Say which nodes of a site are slow, in what, and why.

    --virtual examines a site that exists in numbers only, with faults that are planted; --from judges logs of
    other benchmarks: tables of all pairs, mpi_stream, or a folder with a log of each node. Exit code: 4 if a
    node, a cable or the whole site is suspected, else 3 if noise hides losses of 10 %, else 0. The command
    that drains suspects is printed and never run.
    """

    name = "accept site"
    has_tables = True

    virtual: int | None = option("Examine a virtual site of so many nodes, numbered from 0.", "N")
    plant: Sequence[str] = option(
        "Plant a fault in it: memory-channel, link, governor, neighbour, bios, cable, half or site, and a "
        "node. Repeat for more.",
        "KIND:NODE[:PERCENT]",
        only_with="virtual N",
    )
    kinds: int = option(
        "Kinds of nodes of the virtual site; 2: every second rack has other processors and memory.",
        "K",
        default=1,
        type=click.IntRange(1, 2),
        only_with="virtual N",
    )
    seed: int = option(
        "Seed of random numbers.", default=1, type=click.IntRange(min=0, max=2**32 - 1), only_with="virtual N"
    )
    source: Path | str | None = option(
        "Judge a log, or the logs in a folder.", "LOG|DIR", spelled="--from", type=click.Path()
    )
    baseline: Path | str | None = option("Compare the site with an earlier run: its .json.", "SITE.json")
    out: Sequence[str] = option(
        "Write the result; the ending chooses the format: .json (a baseline), .jsonl, .xml (JUnit), .prom "
        "(OpenMetrics) or .html. Repeat for more.",
        "FILE",
        spelled="-o --out",
        type=Output(),
    )

    def do(self) -> AcceptanceDocument:
        """Examines a virtual site of `virtual` nodes with the faults `plant`, or judges the logs in `source`.

        UsageError where a log is damaged or holds too few nodes, and for a baseline of another site.
        """
        from elbowroom.accept.acceptance import compare_site, examine, examine_logs
        from elbowroom.accept.document import BASELINES
        from elbowroom.accept.formats import format_of
        from elbowroom.accept.logged import read_site
        from elbowroom.accept.virtual_site import VirtualSite, parse_plant

        if (self.virtual is None) == (self.source is None):
            raise UsageError(
                "is needed, or --from, and not both",
                field="virtual",
                value=self.virtual,
                hint="try --virtual 1000, or give --from DIR with the logs of a site",
            )
        formats = [(Path(name), format_of(Path(name))) for name in self.out]
        before = None if self.baseline is None else BASELINES.read(Path(self.baseline))
        if self.virtual is not None:
            plants = [parse_plant(text) for text in self.plant]
            site = VirtualSite(self.virtual, plants, seed=self.seed, kinds=self.kinds)
            document = examine(
                site, name=f"virtual site of {self.virtual} nodes, seed {self.seed}; nothing was measured"
            )
        else:
            assert self.source is not None
            document = examine_logs(read_site(Path(self.source)), name=str(self.source))
        if before is not None:
            document = compare_site(document, before, str(self.baseline))
        for path, one in formats:
            write_atomically(path, one.text(document))
        return document

    def print(self, result: AcceptanceDocument) -> None:
        """The suspects, the worst first, and what the site keeps where both sides run."""
        print_wrapped(result.site, style="bold")
        if result.suspects:
            print()
            _print_suspects(result)
        if result.levels:
            print()
            _print_levels(result)
        for note in result.notes:
            print_wrapped(f"- {note}")
        for change in result.changes:
            before, now = number(change.before), number(change.now)
            print_wrapped(
                f"- {change.quantity}: {now}, {before} in the baseline, {percent(change.loss)} worse"
            )
        for path in self.out:
            print_wrapped(f"wrote: {path}")
        if result.drain:
            print()
            print_wrapped("To take the suspects out of use (not run):")
            print(result.drain)

    def answer(self, result: AcceptanceDocument) -> Answer:
        """The suspects, the worst of them, and what to type next."""
        pages = [path for path in self.out if path.endswith(".json")]
        if result.exit_code == 0 and not pages:
            following = self.again(out=[*self.out, "site.json"])
        elif not any(path.endswith(".html") for path in self.out):
            following = self.again(out=[*self.out, "site.html"])
        else:
            following = command_line("help", "accept")
        style = "green" if result.exit_code == 0 else "red"
        return Answer(result.verdict, result.why, following, style)

    def exit_code(self, result: AcceptanceDocument) -> int:
        """4 with suspects, 3 if too noisy, else 0."""
        return result.exit_code


accept = function_of(AcceptSite, "accept")


def _print_suspects(result: AcceptanceDocument) -> None:
    from elbowroom.accept.causes import cause_text

    table = new_table("suspect", "quantity", ">loss", ">95 %", ">score", "~cause")
    for one in result.suspects:
        ends = "" if one.low is None or one.high is None else span(percent(one.low), percent(one.high))
        table.add_row(
            one.name,
            one.quantity,
            percent(one.loss),
            ends,
            f"{one.score:g}",
            f"{one.cause}: {cause_text(one.cause)}",
            weight=one.score,
        )
    print_table(table, "the surest")
    worst = sorted(result.suspects, key=lambda one: -one.loss)[:_WORST]
    for one in worst:
        print_wrapped(f"- {one.name}: {one.evidence}")


def _print_levels(result: AcceptanceDocument) -> None:
    table = new_table("quantity", ">median", "unit", ">seen from", ">kept beside the other side")
    for level in result.levels:
        table.add_row(
            level.quantity,
            number(level.median),
            level.unit,
            "n/a" if level.visible is None else percent(level.visible),
            "" if level.kept is None else percent(level.kept),
        )
    print_table(table)
