"""`elbowroom explain`: where a loss comes from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from elbowroom import api
from elbowroom.api.quantities import parse_size, size
from elbowroom.cli.console import console, new_table, print_json, print_wrapped
from elbowroom.cli.options import FIGURE, NOISY, command, json_option

if TYPE_CHECKING:
    from rich.table import Table

    from elbowroom.api.explanation import ChainStep, ExplainedPoint, Explanation, SideLoss


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


@command()
@click.argument("runs", metavar="RUN [RUN...]", nargs=-1, required=True)
@click.option("-o", "--out", type=FIGURE, metavar="FILE", help="Draw a figure: .svg or .png.")
@click.option("--kernel", metavar="KERNEL", help="Explain this kernel's losses; default: triad first.")
@click.option("--cores", type=click.IntRange(min=1), metavar="N", help="Number of computing cores.")
@click.option("--size", metavar="SIZE", help="Message size: 64MiB.")
@json_option
def explain(
    runs: tuple[str, ...],
    out: str | None,
    kernel: str | None,
    cores: int | None,
    size: str | None,
    as_json: bool,
) -> int:
    """Explain where losses come from: frequency, caches, memory, link, polling ...

    Compares points that differ in one thing only: kernels that use registers, caches, local or remote memory,
    beside the same messages on the same cores. `elbowroom run contrast` measures all of them. Several runs
    must come from the same machine.
    """
    wanted = None if size is None else parse_size(size, "size")
    explanation = api.explain(*runs, kernel=kernel, cores=cores, size=wanted)
    if out is not None:
        api.save_explanation(explanation, out)
    if as_json:
        print_json(explanation)
    else:
        print_explanation(explanation)
        if out is not None:
            click.echo(out)
    return 0 if explanation.trusted else NOISY


def print_explanation(explanation: Explanation) -> None:
    """What is told, a sentence for each source, then a table of all points."""
    virtual = " (virtual machine, nothing was measured)" if explanation.virtual else ""
    print_wrapped(f"{explanation.machine}{virtual}: where the losses come from", style="bold")
    if not explanation.trusted:
        print_wrapped("No verdict:", style="bold yellow")
    for reason in explanation.reasons:
        print_wrapped(f"- {reason}", indent="  ")
    print()
    for sentence in explanation.summary:
        print_wrapped(sentence, style="bold")
    if explanation.summary:
        print()
    for item in explanation.statements:
        print_wrapped(item.text)
    if not explanation.cases:
        return
    listed = _listed(explanation)
    print()
    console().print(_table_of(listed))
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


def _table_of(cases: Sequence[ExplainedPoint]) -> Table:
    """Two lines for each point, one for each side."""
    heads = [(HEADS.get(name, name), "right") for name in COLUMNS]
    table = new_table(
        ("kernel", ""), ("n", "right"), ("size", "right"), ("nodes", ""), ("side", ""),
        ("kept", "right"), *heads, ("", ""),
    )  # fmt: skip
    for case in cases:
        head = [
            api.explanation.kernel_text(case),
            str(case.n),
            size(case.size),
            f"{case.comp_node}/{case.comm_node}",
        ]
        for split in case.splits:
            shares = [_share(split, name) for name in COLUMNS]
            last = case.regime if split is case.splits[0] and case.regime in ("red", "blue") else ""
            table.add_row(*head, split.side, f"{split.kept.value:.2f}", *shares, last)
            head = [""] * len(head)
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
