"""Which send belongs to which receive, and which calls of all ranks are one collective operation.

Records have no tags and no communicators. The k-th message of a sender to a receiver is matched with the k-th
one of the same bytes at the receiver, then what is left with each other in order: MPI keeps this order for
messages with one tag and communicator. Both are counted from the last one, as a ring loses the first ones.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


def match(sends: Ints, receives: Ints) -> tuple[Ints, Ints]:
    """Rows of equal keys, matched from the last one of each key on: indices in `sends` and in `receives`.

    Both (N, K) integers, the rows of a key in order of time.
    """
    if not len(sends) or not len(receives):
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    keys = codes(np.concatenate([sends, receives]))
    a, b = keys[: len(sends)], keys[len(sends) :]
    wide = np.int64(max(len(a), len(b)) + 1)
    left, right = a * wide + from_last(a), b * wide + from_last(b)
    _, at_a, at_b = np.intersect1d(left, right, assume_unique=True, return_indices=True)
    return at_a, at_b


def codes(rows: Ints) -> Ints:
    """A number for each row of integers (N, K), the same for equal rows. Much faster than unique rows."""
    code = np.zeros(len(rows), dtype=np.int64)
    for column in rows.T:
        at = _dense(column)
        code = _dense(code * (at.max(initial=0) + 1) + at)
    return code


def _dense(values: Ints) -> Ints:
    """The place of each value among the different ones."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    result = np.zeros(len(values), dtype=np.int64)
    result[order[1:]] = np.cumsum(ordered[1:] != ordered[:-1])
    return result


def from_last(keys: Ints) -> Ints:
    """For each row how many rows with the same key come after it."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    ends = np.searchsorted(ordered, ordered, side="right")
    result = np.empty(len(keys), dtype=np.int64)
    result[order] = ends - 1 - np.arange(len(keys))
    return result


def matched_messages(send: dict[str, Ints], receive: dict[str, Ints]) -> tuple[Ints, Ints]:
    """Sends and receives that belong together. Each of `from`, `to`, `bytes`, `begin` and `end`, in order of
    `begin` for one pair of ranks; what would be complete before it was sent is not matched.
    """
    rounds = (("from", "to", "bytes"), ("from", "to"))
    free_s, free_r = np.arange(len(send["from"])), np.arange(len(receive["from"]))
    pairs: list[tuple[Ints, Ints]] = []
    for names in rounds:
        a, b = match(
            np.stack([send[name][free_s] for name in names], axis=1),
            np.stack([receive[name][free_r] for name in names], axis=1),
        )
        a, b = free_s[a], free_r[b]
        good = receive["end"][b] >= send["begin"][a]
        pairs.append((a[good], b[good]))
        free_s, free_r = np.setdiff1d(free_s, a[good], True), np.setdiff1d(free_r, b[good], True)
    return np.concatenate([a for a, _ in pairs]), np.concatenate([b for _, b in pairs])


def last_begins(rank: Ints, call: Ints, begin: Ints, ranks: int) -> Ints:
    """For operations of all ranks: when the last rank called each of them; its own begin where not all are
    there.
    """
    if not len(rank):
        return begin
    group, members = operations(rank, call)
    latest = np.full(len(members), np.iinfo(np.int64).min)
    np.maximum.at(latest, group, begin)
    return np.where(members[group] == ranks, latest[group], begin)


def operations(rank: Ints, call: Ints) -> tuple[Ints, Ints]:
    """Which operation each call belongs to (the k-th last one of its function in each rank), and how many
    ranks each operation has.
    """
    place = from_last(codes(np.stack([rank, call], axis=1)))
    group = codes(np.stack([call, place], axis=1))
    return group, np.bincount(group)
