"""`elbowroom explain`: where a loss comes from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from elbowroom.cli.answer import Answer, command_line
from elbowroom.cli.console import print_list, print_wrapped
from elbowroom.cli.options import FIGURE
from elbowroom.cli.tables import LARGEST_LOSSES, ShownTable, new_table, print_table
from elbowroom.draw.files import save_panels
from elbowroom.errors import UsageError
from elbowroom.explain.figures import figures
from elbowroom.explain.words import kernel_text
from elbowroom.machine.identity import HARDWARE, check_same, difference
from elbowroom.quantities import format_size
from elbowroom.verbs.declaration import Verb, argument, function_of, option
from elbowroom.verbs.run_options import out_option

if TYPE_CHECKING:
    from elbowroom.draw.figure import Figure
    from elbowroom.explain.explanation import ChainStep, ExplainedPoint, Explanation, SideLoss
    from elbowroom.verbs.run_folder import Run

COLUMNS = ("everything but memory", "cache", "last-level cache", "memory controller", "link")
HEADS = {
    "everything but memory": "other",
    "cache": "cache",
    "last-level cache": "LLC",
    "memory controller": "memory",
}
KEY = (
    "Shares of each side's loss; other: everything but memory; ? undecided, < combined with the next; - no "
    "such step, or no significant loss. Kept: 1 is as alone."
)


class Explain(Verb):
    """Explain where losses come from: frequency, caches, memory, link, polling ...

    Compares points that differ in one thing only: kernels that use registers, caches, local or remote memory,
    beside the same messages on the same cores. `elbowroom run contrast` measures all of them. Several runs
    must come from the same machine.
    """

    name = "explain"
    has_tables = True
    saves = True

    runs: tuple[Run | Path | str, ...] = argument(metavar="RUN [RUN...]", nargs=-1, spread=True)
    out: Path | str | None = out_option(FIGURE, "Draw a figure: .svg or .png.")
    kernel: str | None = option("Explain this kernel's losses; default: triad first.", "KERNEL")
    cores: int | None = option("Number of computing cores.", "N", type=click.IntRange(min=1))
    size: int | None = option("Message size: 64MiB.", "SIZE")

    def do(self) -> Explanation:
        """How much of the loss comes from frequency, caches, memory controller, link, polling, runtime
        system and scheduling, by contrast between the points of runs of one machine (docs/guide/explain.md).

        Without `kernel`, `cores` and `size` (bytes), TRIAD at the most cores and the largest message is
        explained, and every point split. UsageError where the runs are of different machines, or hold nothing
        to explain.
        """
        from elbowroom.explain.explainer import explain as explain_runs
        from elbowroom.verbs.run_folder import open_each

        runs = open_each(self.runs)
        _check_machines(runs)
        observed = [run.observed() for run in runs]
        return explain_runs(observed, runs[0].machine, kernel=self.kernel, n=self.cores, size=self.size)

    def print(self, result: Explanation) -> None:
        """A sentence for each source, then a table of all points."""
        print_explanation(result)
        if self.out is not None:
            click.echo(str(self.out))

    def answer(self, result: Explanation) -> Answer:
        """Where the largest loss comes from, and the command that measures what is undecided."""
        hint = next((item.hint for item in result.statements if item.hint), "")
        largest = max(
            (item for item in result.statements if item.share is not None),
            key=lambda item: item.share or 0.0,
            default=None,
        )
        why = largest or next(iter(result.statements), None)
        verdict = " ".join(result.summary) or "No loss is significant, so there is nothing to explain."
        if not result.trusted:
            verdict = f"No verdict: {' '.join(result.reasons[:1])}"
        return Answer(
            verdict,
            why.text.partition("; to measure one:")[0]
            if why
            else "No point has a computation beside messages.",
            hint if hint.startswith("elbowroom ") else command_line("fit", *result.runs),
            "" if result.trusted else "yellow",
        )


explain = function_of(Explain)


def explanation_figures(explanation: Explanation) -> tuple[Figure, ...]:
    """What each side keeps, source by source, and the blue and red points, as figures."""
    return figures(explanation.shown, explanation.cases)


def save(explanation: Explanation, path: Path) -> None:
    """Writes the figures as one .png or .svg."""
    drawn = explanation_figures(explanation)
    if not drawn:
        raise UsageError(
            "holds no point with a computation beside messages, so there is nothing to draw",
            field="run",
            value=", ".join(explanation.runs),
            hint="measure one: elbowroom run contrast",
        )
    where = f"{explanation.machine}{' (virtual)' if explanation.virtual else ''}"
    save_panels(drawn, path, columns=2, title=f"Where it comes from: {where}", shared=False)


def _check_machines(runs: list[Run]) -> None:
    """Refuses runs of machines that differ in name, cores, nodes or number of hosts."""
    first = runs[0].machine
    for run in runs[1:]:
        check_same(
            difference(run.machine, first, HARDWARE),
            message="is from another machine than the first run",
            field="run",
            value=str(run.path),
            hint="explain the runs of one machine together, others apart",
        )


def print_explanation(explanation: Explanation) -> None:
    """What is told, a sentence for each source, then a table of all points."""
    virtual = " (virtual machine, nothing was measured)" if explanation.virtual else ""
    print_wrapped(f"{explanation.machine}{virtual}: where the losses come from", style="bold")
    print_list(explanation.reasons, indent="  ")
    print()
    for item in explanation.statements:
        print_wrapped(item.text)
    if not explanation.cases:
        return
    listed = _listed(explanation)
    print()
    print_table(_table_of(listed), LARGEST_LOSSES)
    print_wrapped(KEY)
    others = dict.fromkeys(case.kernel for case in explanation.cases if case not in listed)
    if others:
        print_wrapped(f"More points of {', '.join(others)}: --kernel NAME, or --json.")
    print_wrapped(
        f"95 % intervals: {explanation.estimate}. Contrasts are not causes: `elbowroom help explain`."
    )


def _listed(explanation: Explanation) -> list[ExplainedPoint]:
    """All points of the kernel that is told; others that move memory beside its messages on its cores."""
    shown = explanation.shown[0]
    return [
        case
        for case in explanation.cases
        if case.kernel == shown.kernel
        or ((case.n, case.size) == (shown.n, shown.size) and case.regime is not None)
    ]


def _table_of(cases: Sequence[ExplainedPoint]) -> ShownTable:
    """Two lines for each point, one for each side."""
    heads = [f">{HEADS.get(name, name)}" for name in COLUMNS]
    table = new_table("kernel", ">n", ">size", "nodes", "side", ">kept", *heads, "")
    for case in cases:
        head = [
            kernel_text(case),
            str(case.n),
            format_size(case.size),
            f"{case.comp_node}/{case.comm_node}",
        ]
        lines = []
        for split in case.splits:
            shares = [_share(split, name) for name in COLUMNS]
            last = case.regime if split is case.splits[0] and case.regime in ("red", "blue") else ""
            lines.append((*head, split.side, f"{split.kept.value:.2f}", *shares, last or ""))
            head = [""] * len(head)
        table.add_group(lines, weight=max((1 - split.kept.value for split in case.splits), default=0.0))
    return table


def _share(split: SideLoss, source: str) -> str:
    """The cell of one source."""
    step = next((step for step in split.steps if source in step.sources), None)
    if step is None or step.share is None:
        return "-"
    if _shown_at(step) != source:
        return "<"
    return "?" if step.decided == "undecided" else f"{100 * step.share.value:.0f} %"


def _shown_at(step: ChainStep) -> str:
    """The last of the sources that have a column."""
    return next(name for name in reversed(COLUMNS) if name in step.sources)
