"""What Slurm knows of the nodes of an allocation: their switches and features."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence

from elbowroom.errors import UsageError
from elbowroom.launch.launchers.srun import expanded
from elbowroom.launch.mpi import stdout_of

_SWITCH = re.compile(r"SwitchName=(\S+) Level=0 .*?Nodes=(\S+)")


def switches_of(nodes: Sequence[str]) -> tuple[int, ...] | None:
    """A number for the lowest switch of each node; None where Slurm does not know all of them."""
    if not shutil.which("scontrol"):
        return None
    known: dict[str, int] = {}
    for number, (_, folded) in enumerate(_SWITCH.findall(stdout_of("scontrol", "show", "topology"))):
        known |= dict.fromkeys(expanded(folded), number)
    numbers = tuple(known.get(node, -1) for node in nodes)
    return numbers if min(numbers) >= 0 and len(set(numbers)) > 1 else None


def features_of(nodes: Sequence[str], wanted: str) -> tuple[str, ...]:
    """Which of the `wanted` features (with commas between them) each node has. UsageError where Slurm knows
    none of them.
    """
    chosen = [word.strip() for word in wanted.split(",")]
    rows = (
        stdout_of("sinfo", "-h", "-N", "-n", ",".join(nodes), "-o", "%N %b") if shutil.which("sinfo") else ""
    )
    known = {
        name: features.split(",") for name, _, features in (row.partition(" ") for row in rows.splitlines())
    }
    of_nodes = tuple("+".join(one for one in chosen if one in known.get(node, ())) for node in nodes)
    if not any(of_nodes):
        every = sorted({feature for features in known.values() for feature in features} - {"(null)"})
        hint = f"one of: {', '.join(every)}" if every else "Slurm knows no features of these nodes"
        raise UsageError("no node has this feature", field="by_feature", value=wanted, hint=hint)
    return of_nodes
