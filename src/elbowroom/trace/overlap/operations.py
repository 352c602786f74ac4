"""What kinds of communication there are: the operation that a name says, and the channels that it holds."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from elbowroom.trace.overlap.document import CommunicationOperation
from elbowroom.trace.overlap.names import is_copy, of_transfer

_OPERATIONS = {
    re.compile(pattern, re.IGNORECASE): name
    for pattern, name in (
        (r"all[-_]?reduce", "all-reduce"),
        (r"all[-_]?gather", "all-gather"),
        (r"reduce[-_]?scatter", "reduce-scatter"),
        (r"all[-_]?to[-_]?all", "all-to-all"),
        (r"broadcast|bcast", "broadcast"),
        (r"(?<!all)[-_]?reduce(?![-_]?scatter)", "reduce"),
    )
}


def operation_of(name: str, channels: int | None = None) -> CommunicationOperation:
    """The operation that a name says: a collective, send/receive, copy, or else `communication`."""
    for pattern, operation in _OPERATIONS.items():
        if pattern.search(name):
            return CommunicationOperation(operation, channels)
    if of_transfer(name):
        return CommunicationOperation("send/receive", channels)
    return CommunicationOperation("copy" if is_copy(name) else "communication", channels)


def operations_of(names: Sequence[str], channels: Mapping[str, int]) -> tuple[CommunicationOperation, ...]:
    """The operation of each name; `channels` of those names that hold some."""
    return tuple(operation_of(name, channels.get(name)) for name in names)
