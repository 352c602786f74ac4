"""Damage to files and texts: what a full disk, a killed job, an editor or `cat` make of them."""

from __future__ import annotations

import gzip
import random
from collections.abc import Iterator

GZ = b"\x1f\x8b"


def damages(data: bytes, count: int, seed: int = 0, other: bytes = b"") -> Iterator[bytes]:
    """`count` damaged copies, the same ones for one seed. `other`: a file of the same kind, to mix in. Of
    compressed data, half are damaged before they are compressed.
    """
    for number in range(count):
        dice = random.Random(f"{seed}/{number}")
        if data.startswith(GZ) and dice.random() < 0.5:
            plain = gzip.decompress(other) if other.startswith(GZ) else other
            yield gzip.compress(_damaged(gzip.decompress(data), dice, plain), 1)
        else:
            yield _damaged(data, dice, other)


def _damaged(data: bytes, dice: random.Random, other: bytes) -> bytes:
    at = dice.randrange(len(data) + 1)
    kind = dice.randrange(8)
    if kind == 0:
        return data[:at]
    if kind == 1:
        changed = bytearray(data)
        for _ in range(dice.randint(1, 8)):
            changed[dice.randrange(len(data))] = dice.randrange(256)
        return bytes(changed)
    if kind == 2:
        return data[:at] + data[at + dice.choice((1, 7, 4096)) :]
    if kind == 3:
        return (
            data[:at]
            + dice.choice((b"\0" * 512, b"nan", b'"', b"}", b"]", b"\xff", b"-", b"1e999"))
            + data[at:]
        )
    if kind == 4:
        return data + (other or data)
    if kind == 5:
        return data.replace(
            *dice.choice(((b"us", b"ms"), (b"GB/s", b"MB/s"), (b'"ts"', b'"tz"'), (b".", b",")))
        )
    lines = data.splitlines(keepends=True)
    first, second = dice.randrange(len(lines)), dice.randrange(len(lines))
    if kind == 6:
        lines[first], lines[second] = lines[second], lines[first]
        return b"".join(lines)
    more = other.splitlines(keepends=True) or lines
    return b"".join([*lines[:first], *more[: len(more) // 2], *lines[first:]])
