"""What a function of MPI does, by its name."""

from __future__ import annotations

import re
from collections.abc import Collection

__all__ = ["CATEGORIES", "SET_UP", "communicates", "kind_of", "sets_up"]

CATEGORIES = ("mpi", "message")
"""Categories of this project's own traces whose events communicate, unless they set MPI up."""
SET_UP = "set-up of MPI"
"""How the category of MPI's other calls is named."""

_MPI = re.compile(r"\s*P?MPIX?_(\w+)", re.IGNORECASE)
_ENDS = re.compile(r"(_(c|x|f08|f08ts|fts))?_{0,2}$")
"""Large counts, and Fortran's."""
_KINDS = {
    "collective": r"i?(bcast|reduce(_scatter(_block)?)?|allreduce|(all)?gatherv?|scatterv?|alltoall[vw]?"
    r"|(ex)?scan|neighbor_(allgatherv?|alltoall[vw]?))$",
    "message": r"(i?[bsr]?send|i?m?recv|i?sendrecv(_replace)?|start(all)?|pready(_range|_list)?"
    r"|r?(put|get|accumulate|get_accumulate)|fetch_and_op|compare_and_swap"
    r"|win_(fence|complete|unlock|unlock_all|flush\w*))$",
    "wait": r"(wait|test|(wait|test)(all|any|some)|request_get_status\w*|cancel|i?m?probe|i?barrier|parrived"
    r"|win_(wait|test|post|start|lock|lock_all|sync))$",
    "input/output": r"file_",
}
_PATTERNS = {kind: re.compile(pattern, re.IGNORECASE) for kind, pattern in _KINDS.items()}


def kind_of(name: str) -> str:
    """`collective`, `message`, `wait`, `input/output`, or `set-up` for the others (MPI_Init, MPI_Comm_dup);
    empty if it is no function of MPI.
    """
    mpi = _MPI.match(name)
    if mpi is None:
        return ""
    call = _ENDS.sub("", mpi[1])
    return next((kind for kind, pattern in _PATTERNS.items() if pattern.match(call)), "set-up")


def sets_up(name: str) -> bool:
    """Whether `name` is a function of MPI that neither moves data nor waits."""
    return kind_of(name) == "set-up"


def communicates(category: str | None, name: str, categories: Collection[str] = CATEGORIES) -> bool:
    """Whether an event of a category is communication: MPI_Init, MPI_Finalize, MPI_Comm_* are not."""
    return category in categories and not sets_up(name)
