"""The options of `diagnose` that measure the demand of a program."""

from __future__ import annotations

from elbowroom.quantities import parse_cores
from elbowroom.verbs.declaration import Options, option


class DemandOption(Options):
    """Whether the demand of the program is measured, beside a load on which cores."""

    demand: bool = option(
        "Also run CMD beside known memory traffic: what it loses, and what load it is itself."
    )
    load_cores: tuple[int, ...] | None = option(
        "With --demand: cores of the load; default: half of those that share a cache.",
        "LIST",
        parse=parse_cores,
        only_with="demand",
    )
