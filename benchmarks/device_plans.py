"""What benchmarks/device.py measures: the plans of its parts, and what is changed of them. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

FITTED = (
    (8192, 4096, 7168), (4096, 4096, 4096), (8192, 8192, 8192),
    (2048, 8192, 4096), (16384, 4096, 2048), (4096, 14336, 4096),
)  # fmt: skip
"""Products that a model is fitted to."""
UNSEEN = (
    (8192, 7168, 2048), (6144, 6144, 6144), (4096, 8192, 8192),
    (8192, 2048, 16384), (12288, 4096, 4096), (5120, 5120, 10240),
)  # fmt: skip
"""Products that it predicts."""
CASE_REPEAT = 5
PRODUCT_SMS = (8, 16, 32)


OVERLAP = "gpu-overlap"
SHORT = 0.1
"""Seconds of a phase."""
LONGER = 5
"""How many times as long those are that show whether short ones give the same medians."""
REPEATED = ("repeat-1", "repeat-2", "repeat-short")


Settings = dict[str, Any]
"""Keys of a plan."""


class Run(NamedTuple):
    """A run folder to be: its name, the plan, and what is changed of it."""

    name: str
    plan: str
    settings: Settings
    repeat: int


@dataclass(frozen=True)
class Part:
    """Runs that are measured together; `seconds` is its share of the time; `stand_in` changes the settings of
    the driver's stand-in. `gpu`: it needs an accelerator. `cases`, with the seconds of
    a phase, belong to no run, and stay raw.
    """

    name: str
    seconds: float
    runs: tuple[Run, ...]
    stand_in: dict[str, Any] = field(default_factory=dict)
    gpu: bool = True
    cases: tuple[dict[str, Any], ...] = ()


def _products(settings: Mapping[str, Any], repeat: int, shapes: Sequence[Sequence[int]]) -> tuple[Run, ...]:
    changes: Settings = {
        "victims": "gemm",
        "movers": ["sm_idle", "sm_target", "sm_hbm", "d2d"],
        "orders": "mover",
    }
    changes |= {"paces_mb_s": 0, "control": False, **settings}
    return tuple(
        Run(f"product-{number}", OVERLAP, {**changes, "gemm": list(shape)}, repeat)
        for number, shape in enumerate(shapes)
    )


def device_parts() -> tuple[Part, ...]:
    """What is measured on a device, in the order of its value."""
    repeated: Settings = {"control": False, "movers": "d2d", "orders": "victim", "window": SHORT}
    table: Settings = {"sms": [8, 16, 20, 32], "orders": "mover", "holders": "pairs", "plan_for": "others"}
    table |= {"movers": ["d2h", "d2d", "sm_hbm", "sm_host", "sm_idle", "sm_target"], "window": SHORT}
    table |= {"victims": ["gemm", "triad"], "control": False}
    chain = {**table, "victims": "chain", "sms": [8, 32], "paces_mb_s": 0}
    copies: Settings = {
        "kernels": ["memset_nt", "triad"],
        "copy_sizes": "64MiB",
        "sizes": "1MiB",
        "window": 0.1,
    }
    messages = {**copies, "kernels": "none", "n": ["half", "all"]}
    host: Settings = {"kernels": "memset_nt", "n": [1, 2, 4, 6, 8, 10, 12, 14], "window": 0.1}
    cores = {**host, "kernels": "triad", "n": [1, 4, 8, 12, 14]}
    placement = {**cores, "n": ["few", "half", "all"]}
    products = _products({"sms": PRODUCT_SMS, "window": 0.06}, 3, (*FITTED, *UNSEEN))
    return (
        Part("controls", 70, _repeated(repeated, 5), cases=_event_only(FITTED[0], 2 * SHORT)),
        Part("published", 180, (Run("published", OVERLAP, table, 5), Run("chain", OVERLAP, chain, 5))),
        Part("host", 90, _host(5, model=host, cores=cores, placement=placement), gpu=False),
        Part("copies", 50, (Run("copies", "gpu", {**copies, "beside_messages": []}, 5),)),
        Part("copies-messages", 30, (Run("copies-messages", "gpu", messages, 5),)),
        Part("products", 110, products),
    )


def _event_only(shape: Sequence[int], window: float) -> tuple[dict[str, Any], ...]:
    """Kernels beside a load that only asks whether an event has come: they must keep everything."""
    kernels = {"gemm": dict(zip("mnk", shape, strict=True)), "chain": {"launches": 50}}
    named = {name: {"kind": name, **keys} for name, keys in kernels.items()}
    return tuple(
        {"window": window, "case": {"name": f"{name}-event-only", "a": side, "b": {"kind": "control"}}}
        for name, side in named.items()
    )


def _repeated(settings: Settings, repeat: int) -> tuple[Run, ...]:
    """The same run twice, and with the short phases of other parts: its medians should not differ."""
    long = {**settings, "window": LONGER * settings["window"]}
    return tuple(
        Run(name, OVERLAP, of, repeat) for name, of in zip(REPEATED, (long, long, settings), strict=True)
    )


def _host(repeat: int, **settings: Settings) -> tuple[Run, ...]:
    return tuple(Run(name, name, changes, repeat) for name, changes in settings.items())


def stand_in_parts() -> tuple[Part, ...]:
    """The same parts in seconds, for the driver's stand-in. Copies beside computing cores need the host's
    clock, and copies that take longer than the host needs to submit them.
    """
    small: Settings = {
        "gemm": [64, 64, 64],
        "triad_bytes": "96KiB",
        "copy_size": "1MiB",
        "launches": 10,
        "sms": 4,
    }
    small |= {"window": 0.0006, "orders": "mover", "paces_mb_s": 0, "control": False}
    table = {**small, "holders": "pairs", "plan_for": "others", "victims": ["gemm", "triad"]}
    chain = {**table, "victims": "chain"}
    copies: Settings = {"kernels": "prime", "n": 1, "copy_sizes": "4MiB", "sizes": "64KiB", "window": 0.06}
    copies |= {"control": False, "scheduling": True, "directions": ["h2d", "d2h"]}
    host: Settings = {"n": 1, "window": 0.03, "sizes": "1MiB", "control": False, "working_set": "4MiB"}
    cores = {**host, "kernels": "triad"}
    clock: Settings = {"virtual_clock": False, "rates": {"h2d": 2e8, "d2h": 2.4e8}}
    without = {**copies, "beside_messages": [], "scheduling": False}
    messages = {**copies, "kernels": "none", "beside_messages": "none"}
    shapes = [[side // 64 for side in shape] for shape in (FITTED[0], UNSEEN[0])]
    repeated = _repeated({**small, "movers": "h2d"}, 2)
    event_only = _event_only(small["gemm"], small["window"])
    return (
        Part("controls", 8, repeated, cases=event_only),
        Part("published", 8, (Run("published", OVERLAP, table, 2), Run("chain", OVERLAP, chain, 2))),
        Part("host", 14, _host(1, model=host, cores=cores, placement=cores), gpu=False),
        Part("copies", 12, (Run("copies", "gpu", without, 2),), clock),
        Part("copies-messages", 12, (Run("copies-messages", "gpu", messages, 2),), clock),
        Part("products", 8, _products(small, 1, shapes)),
    )
