"""Writes docs/measured/public-traces.md: what hiding costs in public traces of others.

python tools/public_traces.py FOLDER > docs/measured/public-traces.md

FOLDER has a README.md whose table names the source and licence of each subfolder, and the traces in kineto,
nsight and rocprof.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from elbowroom import api
from elbowroom.errors import UsageError
from elbowroom.trace.overlap.document import TraceOverlap
from elbowroom.trace.overlap.verdict import duration

HEAD = """# What hiding costs in public traces

`python tools/public_traces.py FOLDER` writes this page. FOLDER holds traces that others published;
they are not part of this repository. [The method](../reference/trace-estimate.md) says what the columns mean.
Times are those of a step of one rank where the trace names steps, else of the whole trace.

| trace | steps | hidden | answer | slowdown beside communication | cost |
|---|---|---|---|---|---|
"""


def row(path: Path) -> str:
    """A line of the table."""
    try:
        found = api.trace_overlap(path)
    except UsageError as error:
        return f"| {path.name} | | | no answer: {error.message.split(';')[0][:80]} | | |"
    per = found.steps or 1
    return (
        f"| {path.name} | {found.steps or 'not named'} | {duration(found.hidden_s / per)} "
        f"| {found.estimate.grade} | {_slowdown(found)} | {_cost(found, per)} |"
    )


def _slowdown(found: TraceOverlap) -> str:
    slowdown = found.estimate.slowdown
    return "" if slowdown is None else f"{slowdown.value:.2f} ({slowdown.low:.2f} to {slowdown.high:.2f})"


def _cost(found: TraceOverlap, per: int) -> str:
    cost = found.estimate.cost
    if cost is not None:
        low, high = duration(cost.low / per), duration(cost.high / per)
        return f"{duration(cost.value / per)} ({low} to {high})"
    return f"at most {duration(found.estimate.at_most_s / per)}" if found.hidden_s else "none"


def main(folder: Path) -> None:
    """Prints the page."""
    print(HEAD, end="")
    for part in ("kineto", "nsight", "rocprof"):
        for path in sorted((folder / part).glob("*")):
            print(row(path), flush=True)
    print("\n## Sources\n\n| folder | repository on GitHub | licence |\n|---|---|---|")
    for line in (folder / "README.md").read_text().splitlines():
        if line.startswith(("| kineto |", "| nsight |", "| rocprof |")):
            print("|".join(line.split("|")[:4]) + "|")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
