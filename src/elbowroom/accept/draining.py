"""The commands that take nodes out of use: printed, never run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from elbowroom.accept.document import Suspect
from elbowroom.accept.readings import fold
from elbowroom.quantities import percent, plural

MOST = 0.25
"""Part of the nodes that one reason may drain: what more of them share is a fault of the site or of the
measurement.
"""
NOT_REACHABLE = "not reachable"


class Draining(msgspec.Struct, frozen=True, kw_only=True):
    """A command for each reason, on lines of their own; `notes`: the reasons for which there is none."""

    commands: str
    notes: tuple[str, ...] = ()


def drain(suspects: Sequence[Suspect], nodes: int, lost: Mapping[str, str] | None = None) -> Draining:
    """The commands for the suspects and the `lost` nodes of a site of so many `nodes`."""
    reasons = {one.name: one.cause for one in suspects if one.node is not None}
    reasons |= dict.fromkeys(lost or {}, NOT_REACHABLE)
    lines, notes = list[str](), list[str]()
    for reason in sorted(set(reasons.values())):
        names = [name for name, own in reasons.items() if own == reason]
        if len(names) > max(1.0, MOST * nodes):
            notes.append(
                f"No command drains the {plural(len(names), 'node')} of the cause {reason!r}, which are more "
                f"than {percent(MOST, digits=0)} of {nodes}: find what they share first"
            )
        else:
            lines.append(f'scontrol update NodeName={fold(names)} State=DRAIN Reason="elbowroom: {reason}"')
    return Draining(commands="\n".join(lines), notes=tuple(notes))
