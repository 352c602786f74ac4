"""What a simulation of single requests saw (docs/simulate.md), and what it means: who loses, from when on."""

from __future__ import annotations

import msgspec


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """Of one group of cores, direction of messages, or copy: bandwidth (MB/s on the bus), how many lines and
    messages ended while it was measured, and latencies of lines (ns), mean and ninth decile.
    """

    bandwidth: float
    lines: int
    messages: int
    mean_ns: float
    d9_ns: float


class Use(msgspec.Struct, frozen=True, kw_only=True):
    """Share of the time that each station was in use; links by from * sockets + to."""

    uplinks: tuple[float, ...]
    links: tuple[float, ...]
    roots: tuple[float, ...]
    memories: tuple[float, ...]


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to one experiment: what its sources saw, in order. `requests`: all that were completed in
    `seconds` of computing.
    """

    sources: tuple[Seen, ...]
    use: Use
    requests: int
    seconds: float
