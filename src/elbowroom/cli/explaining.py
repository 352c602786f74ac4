"""`elbowroom explain`: where a loss comes from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from elbowroom.cli.commands import NOISY, _json, group
from elbowroom.cli.output import print_json
from elbowroom.errors import UsageError

if TYPE_CHECKING:
    from rich.table import Table

    from elbowroom.explain.explanation import Case, Explanation, Split, Step

COLUMNS = ("frequency", "cache", "last-level cache", "memory controller", "link")
HEADS = {"frequency": "freq", "cache": "cache", "last-level cache": "LLC", "memory controller": "memory"}
KEY = (
    "Shares of each side's loss; ? undecided, < told together with the next; - no such step, or no sure "
    "loss. Kept: 1 is as alone."
)


@group.command()
@click.argument("runs", metavar="RUN [RUN...]", nargs=-1, required=True)
@click.option("-o", "--out", metavar="FILE", help="Draw it: .svg or .png.")
@click.option("--kernel", metavar="KERNEL", help="Explain this kernel's losses; default: triad first.")
@click.option("--cores", type=click.IntRange(min=1), metavar="N", help="At this number of computing cores.")
@click.option("--size", metavar="SIZE", help="Beside messages of this size: 64MiB.")
@_json
def explain(
    runs: tuple[str, ...],
    out: str | None,
    kernel: str | None,
    cores: int | None,
    size: str | None,
    as_json: bool,
) -> int:
    """Where losses come from: frequency, caches, memory, link, polling, ...

    Compares points that differ in one thing: what only registers, caches, local and remote memory lose beside
    the same messages on the same cores. `elbowroom run contrast` measures all of them. Several runs must be
    of one machine.
    """
    from elbowroom import api
    from elbowroom.plan.sizes import parse_size

    if out is not None and Path(out).suffix.lower() not in (".svg", ".png"):
        raise UsageError("is no picture", field="out", value=out, mend="end the name in .svg or .png")
    wanted = None if size is None else parse_size(size, "size")
    found = api.explain(*runs, kernel=kernel, cores=cores, size=wanted)
    if out is not None:
        api.save_explanation(found, out)
    if as_json:
        print_json(found)
    else:
        print_explanation(found)
        if out is not None:
            click.echo(out)
    return 0 if found.trusted else NOISY


def print_explanation(found: Explanation) -> None:
    """What is told, a sentence for each source, then a table of all points."""
    from elbowroom.cli.tables import _say, console

    virtual = " (virtual machine, nothing was measured)" if found.virtual else ""
    _say(f"{found.machine}{virtual}: where the losses come from", style="bold")
    if not found.trusted:
        _say("Too noisy to trust:", style="bold yellow")
    for reason in found.reasons:
        _say(f"- {reason}", indent="  ")
    print()
    for sentence in found.summary:
        _say(sentence, style="bold")
    print()
    for item in found.told:
        _say(item.text)
    if not found.cases:
        return
    listed = _listed(found)
    print()
    console().print(_table_of(listed))
    _say(KEY)
    others = dict.fromkeys(case.kernel for case in found.cases if case not in listed)
    if others:
        _say(f"More points of {', '.join(others)}: --kernel NAME, or --json.")
    _say(f"95 % intervals: {found.estimate}. Contrasts are not causes: docs/explain.md.")


def _listed(found: Explanation) -> list[Case]:
    """All points of the kernel that is told; others that move memory beside its messages, on as many cores."""
    shown = found.shown[0]
    return [
        case
        for case in found.cases
        if case.kernel == shown.kernel
        or ((case.n, case.size) == (shown.n, shown.size) and case.regime is not None)
    ]


def _table_of(cases: Sequence[Case]) -> Table:
    """Two lines for each point, one for each side."""
    from elbowroom.cli.tables import _table
    from elbowroom.draw.numbers import size
    from elbowroom.explain.words import kernel_text

    heads = [(HEADS.get(name, name), "right") for name in COLUMNS]
    table = _table(
        ("kernel", ""), ("n", "right"), ("size", "right"), ("nodes", ""), ("side", ""),
        ("kept", "right"), *heads, ("", ""),
    )  # fmt: skip
    for case in cases:
        head = [kernel_text(case), str(case.n), size(case.size), f"{case.comp_node}/{case.comm_node}"]
        for split in case.splits:
            shares = [_share(split, name) for name in COLUMNS]
            last = case.regime if split is case.splits[0] and case.regime in ("red", "blue") else ""
            table.add_row(*head, split.side, f"{split.kept.value:.2f}", *shares, last)
            head = [""] * len(head)
    return table


def _share(split: Split, source: str) -> str:
    """The cell of one source."""
    step = next((step for step in split.steps if source in step.sources), None)
    if step is None or step.share is None:
        return "-"
    if _shown_at(step) != source:
        return "<"
    return "?" if step.decided == "undecided" else f"{100 * step.share.value:.0f} %"


def _shown_at(step: Step) -> str:
    """The last of the sources that have a column."""
    return next(name for name in reversed(COLUMNS) if name in step.sources)
