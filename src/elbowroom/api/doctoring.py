"""The doctor, as Python sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from elbowroom.machine.doctor import Check


def doctor(mpi: str | None = None) -> list[Check]:
    """Each thing that a measurement depends on: ok, warn or n/a, with what mends it."""
    from elbowroom.campaign.doctoring import gather
    from elbowroom.machine.doctor import diagnose

    return list(diagnose(gather(mpi=mpi)))
