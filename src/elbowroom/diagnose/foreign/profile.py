"""What a file of another tool says of a run: times of ranks and of MPI calls, and efficiencies."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from elbowroom.errors import UsageError

FIELD = "from"
"""The option that names such a file."""


class RankTime(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds of one rank: of the run, and inside MPI."""

    rank: int
    seconds: float
    mpi_s: float


class CallTime(msgspec.Struct, frozen=True, kw_only=True):
    """Calls of one MPI function from one place: `seconds` of all ranks together; `sent`: bytes of all
    calls. None and empty: not in the file.
    """

    function: str
    seconds: float
    calls: int | None = None
    sent: float | None = None
    caller: str = ""
    file: str = ""
    line: int | None = None


class Efficiencies(msgspec.Struct, frozen=True, kw_only=True):
    """POP factors, each 0 to 1: parallel efficiency = load balance x serialisation x transfer. None: not
    known. `communication`: serialisation x transfer, where the file has only their product.
    """

    parallel_efficiency: float | None = None
    load_balance: float | None = None
    serialisation: float | None = None
    transfer: float | None = None
    communication: float | None = None


class ForeignProfile(msgspec.Struct, frozen=True, kw_only=True):
    """A profile of a whole run, or of its region `region`.

    `seconds`: duration, the mean of the ranks. `useful`, `mpi`: shares of the ranks' time outside MPI
    (and, where the file tells, outside waiting threads) and inside; None: not in the file. `ranks`: their
    number; None: unknown. `by_rank`: empty if the file has sums only. `calls`: empty if it has no MPI
    functions; `all_calls`: whether no function is missing. `notes`: what is not complete.
    """

    format: str
    written_by: str
    region: str = ""
    seconds: float
    useful: float | None
    mpi: float | None
    ranks: int | None = None
    by_rank: tuple[RankTime, ...] = ()
    calls: tuple[CallTime, ...] = ()
    all_calls: bool = False
    pop: Efficiencies = Efficiencies()
    notes: tuple[str, ...] = ()


def damaged(path: Path, line: int, what: str, written_by: str) -> UsageError:
    """The error for a damaged line."""
    return UsageError(
        f"is damaged: line {line} {what}",
        field=FIELD,
        value=str(path),
        hint=f"{written_by} writes such files: copy the file again, or record it again",
    )


def number(text: str, error: Callable[[str], UsageError], name: str) -> float:
    """A finite number that is not negative; else the error for it."""
    try:
        value = float(text)
    except ValueError:
        raise error(f"has {text!r} as {name}, which is not a number") from None
    if not 0 <= value < float("inf"):
        raise error(f"has {text!r} as {name}, which is not a time, size or count")
    return value
