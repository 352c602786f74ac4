"""`elbowroom accept`: which nodes of a site are slow, in what, and why."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from elbowroom.cli.answer import Answer, command_line
from elbowroom.cli.console import print_wrapped
from elbowroom.cli.options import Output
from elbowroom.cli.tables import new_table, print_table
from elbowroom.errors import UsageError
from elbowroom.files import write_atomically
from elbowroom.heartbeat import say
from elbowroom.launch.planned_starts import PlannedStart
from elbowroom.quantities import number, percent, plural, span
from elbowroom.verbs.declaration import Verb, dry_run_option, function_of, included, option
from elbowroom.verbs.run_options import Launching, hosts_help, launcher_help, timeout_option

if TYPE_CHECKING:
    from elbowroom.accept.allocation import AllocationRequest
    from elbowroom.accept.document import AcceptanceDocument

SHARD = 256
"""Nodes of one MPI job."""
_WORST = 5
"""Suspects that the first screen shows with their evidence."""


class AcceptSite(Verb):
    """Say which nodes of a site are slow, in what, and why.

    Measures the nodes of the allocation, or of --hosts, one MPI rank on each: alone, and in pairs. --node
    compares this node alone with a baseline (prolog, epilog). --virtual examines a site that exists in
    numbers only, with faults that are planted; --from judges logs of other benchmarks: tables of all pairs,
    mpi_stream, or a folder with a log of each node. Exit code: 4 if a node, a cable or the whole site is
    suspected, or a node is lost, else 3 if noise hides losses of 10 %, else 0. The command that drains
    suspects is printed and never run.
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
    node: bool = option("Measure this node alone, in 30 s, and compare it with --baseline.")
    launching: Launching = included(Launching, own={"launcher": launcher_help(), "hosts": hosts_help()})
    budget: float = option("Time of the measurement, whatever the number of nodes.", "TIME", default="5min")
    by_feature: str | None = option("Judge nodes with these features of Slurm apart: icelake,rome.", "F,F")
    resume: Path | str | None = option("Continue the run in this folder.", "DIR")
    size: int = option("Size of large messages.", "SIZE", default="1MiB")
    working_set: int | None = option(
        "Size of TRIAD's arrays on a node; default: four last-level caches.", "SIZE"
    )
    shard: int = option(
        "Most nodes of one MPI job; more are several jobs, drawn anew for each round.",
        "N",
        default=SHARD,
        type=click.IntRange(min=4),
    )
    patience: float = timeout_option("A node that does not answer for so long is lost.", default="60s")
    baseline: Path | str | None = option("Compare the site with an earlier run: its .json.", "SITE.json")
    out: Sequence[str] = option(
        "Write the result; the ending chooses the format: .json (a baseline), .jsonl, .xml (JUnit), .prom "
        "(OpenMetrics) or .html. Repeat for more. A name without an ending: the folder of the run; default "
        "runs/accept-DATE-TIME.",
        "FILE|DIR",
        spelled="-o --out",
        type=Output(),
    )

    dry_run: bool = dry_run_option()
    tell: Callable[[str], object] = say

    def do(self) -> AcceptanceDocument:
        """Measures the nodes of the allocation, or this `node`; examines a virtual site of `virtual` nodes
        with the faults `plant`; or judges the logs in `source`.

        UsageError where there is no allocation, a log is damaged or holds too few nodes, and for a baseline
        of another site; MachineError where too few nodes can be reached.
        """
        from elbowroom.accept.acceptance import compare_site, examine, examine_logs
        from elbowroom.accept.document import BASELINES
        from elbowroom.accept.formats import format_of
        from elbowroom.accept.logged import read_site
        from elbowroom.accept.virtual_site import VirtualSite, parse_plant

        if (self.virtual is not None) + (self.source is not None) + self.node > 1:
            raise UsageError(
                "give only one of --virtual, --from and --node", field="virtual", value=self.virtual
            )
        formats = [(Path(name), format_of(Path(name))) for name in self._files()]
        before = None if self.baseline is None else BASELINES.read(Path(self.baseline))
        if self.virtual is not None:
            plants = [parse_plant(text) for text in self.plant]
            site = VirtualSite(self.virtual, plants, seed=self.seed, kinds=self.kinds)
            document = examine(
                site, name=f"virtual site of {self.virtual} nodes, seed {self.seed}; nothing was measured"
            )
        elif self.node:
            document = self._examine_node(before)
        elif self.source is None:
            document = self._examine_allocation(before)
        else:
            document = examine_logs(read_site(Path(self.source)), name=str(self.source))
        if before is not None and not self.node:
            document = compare_site(document, before, str(self.baseline))
        for path, one in formats:
            write_atomically(path, one.text(document))
        return document

    def _files(self) -> list[str]:
        """What is written beside the folder of the run, which has the baseline of later ones."""
        measured = self.virtual is None and self.source is None and not self.node
        files = [name for name in self.out if Path(name).suffix or not measured]
        return [*files, str(self._folder() / "site.json")] if measured else files

    @functools.cached_property
    def _folders(self) -> list[Path]:
        from elbowroom.measure.campaign import default_out

        given = [Path(name) for name in self.out if not Path(name).suffix]
        if self.resume is not None:
            given.append(Path(self.resume))
        return given or [default_out("accept")]

    def _folder(self) -> Path:
        """The folder of the run."""
        if len(self._folders) > 1:
            names = " ".join(map(str, self._folders))
            raise UsageError(
                "names two folders", field="out", value=names, hint="give one name without ending"
            )
        return self._folders[0]

    def _request(self) -> AllocationRequest:
        from elbowroom.accept.allocation import AllocationRequest

        return AllocationRequest(
            launcher=self.launching.launcher,
            mpi=self.launching.mpi,
            hosts=tuple(self.launching.hosts),
            hostfile=self.launching.hostfile,
            working_set=self.working_set or 0,
            size=self.size,
            budget=self.budget,
            seed=self.seed,
            shard=self.shard,
            patience=self.patience,
            by_feature=self.by_feature,
        )

    def _examine_allocation(self, baseline: AcceptanceDocument | None) -> AcceptanceDocument:
        from elbowroom.accept.acceptance import check_baseline
        from elbowroom.accept.allocation import examine_allocation

        def check(names: Sequence[str]) -> None:
            if baseline is not None:
                check_baseline(names, baseline, str(self.baseline))

        return examine_allocation(
            self._request(), self._folder(), resume=self.resume is not None, tell=self.tell, check=check
        )

    def _examine_node(self, baseline: AcceptanceDocument | None) -> AcceptanceDocument:
        from elbowroom.accept.one_node import examine_node

        return examine_node(self._request(), baseline, str(self.baseline), self.tell)

    def planned_starts(self) -> Iterator[PlannedStart]:
        if self.virtual is not None or self.source is not None:
            return
        request = self._request()
        if self.node:
            from elbowroom.accept.one_node import HERE, NODE_SECONDS, local

            yield PlannedStart(
                what="the probe on this node",
                commands=(local(request).launch(HERE).line(),),
                seconds=NODE_SECONDS,
            )
            return
        nodes, place = request.nodes(), request.place()
        count = 1 if len(nodes) <= self.shard else -(-len(nodes) // (self.shard - 1))
        yield PlannedStart(
            what=f"{plural(count, 'job')} of the probe on {plural(len(nodes), 'node')}",
            commands=(place.launch(nodes[: self.shard]).line(),),
            seconds=self.budget,
        )

    def print(self, result: AcceptanceDocument) -> None:
        """The suspects, the worst first, and what the site keeps where both sides run."""
        print_wrapped(result.site, style="bold")
        if result.suspects:
            print()
            _print_suspects(result)
        if result.levels:
            print()
            _print_levels(result)
        for one in result.missing:
            print_wrapped(f"- lost: {one.name}: {one.why}")
        for note in result.notes:
            print_wrapped(f"- {note}")
        for change in result.changes:
            before, now = number(change.before), number(change.now)
            print_wrapped(
                f"- {change.quantity}: {now}, {before} in the baseline, {percent(change.loss)} worse"
            )
        for path in self._files():
            print_wrapped(f"wrote: {path}")
        if result.drain:
            print()
            print_wrapped("To take the suspects out of use (not run):")
            print(result.drain)

    def answer(self, result: AcceptanceDocument) -> Answer:
        """The suspects, the worst of them, and what to type next."""
        pages = [path for path in self._files() if path.endswith(".json")]
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
