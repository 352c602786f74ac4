"""What 1, 2 … computing cores of a machine get from memory, alone and at several arithmetic intensities: the
loads from which a model learns what jobs that share a node leave each other.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from elbowroom.errors import UsageError
from elbowroom.launch.topologies import KernelRate, kernel_rate
from elbowroom.machine.topology import Machine
from elbowroom.models.load import Computing, Load, LoadRow
from elbowroom.models.run_data import FitData, Layout
from elbowroom.plan.kernels import ASSUMED_STORE_FACTOR, STORE_PAIRS, find
from elbowroom.results import stores
from elbowroom.results.stores import StoreFactor
from elbowroom.stats.summary import summarise

CURSOR_KERNEL = "triad_cursor"
STORES, STORES_NT = next(pair for pair in STORE_PAIRS if pair[0].name == "triad")
CURSORS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64)
COUNTS = 6
"""Numbers of cores that are measured, at most."""
OVER_CACHE = 4
"""Working set of all cores by last-level cache, at least (docs/design/method.md, rule 8)."""
LEAST_SET = 128 << 20

Measure = Callable[..., KernelRate]


def core_rates(
    probe: Path | str,
    machine: Machine,
    data: FitData,
    *,
    seconds: float,
    repeat: int,
    measure: Measure = kernel_rate,
) -> list[LoadRow]:
    """Rows of the calibrated kernel and of triads with more arithmetic on 1 to all cores of the first socket.

    All are measured `repeat` times for `seconds`, in random order. UsageError for a kernel without memory
    traffic, MachineError where the probe fails.
    """
    kernel = data.curves.kernel
    known = find(kernel)
    if known is None or not known.moves_memory:
        raise UsageError(
            "moves no memory", field="run", value=kernel, hint="elbowroom run model --kernels triad"
        )
    first = first_cores(machine, data.layout)
    cases = [
        (count, name, cursor)
        for count in _counts(len(first))
        for name, cursor in ((kernel, 1), *((CURSOR_KERNEL, cursor) for cursor in CURSORS))
    ]
    rates: dict[tuple[int, str, int], list[float]] = {case: [] for case in cases}
    order = random.Random(0)
    for _ in range(repeat):
        for case in order.sample(cases, len(cases)):
            count, name, cursor = case
            size = _working_set(machine, count)
            result = measure(probe, name, first[:count], cursor=cursor, working_set=size, seconds=seconds)
            rates[case].append(_bytes(result, name, cursor))
    return [_row(case, values, data) for case, values in rates.items()]


def measured_store_factor(
    probe: Path | str,
    machine: Machine,
    cores: Sequence[int],
    *,
    seconds: float,
    repeat: int,
    measure: Measure = kernel_rate,
) -> StoreFactor:
    """The store factor from triad and triad_nt on one and on all of these cores, `repeat` times `seconds`
    each, in turn. MachineError where the probe fails.
    """
    counts = {1, len(cores)}
    rates: dict[str, dict[int, list[float]]] = {
        kernel.name: {count: [] for count in counts} for kernel in (STORES, STORES_NT)
    }
    for _ in range(repeat):
        for count in sorted(counts):
            for name, by_count in rates.items():
                size = _working_set(machine, count)
                result = measure(probe, name, cores[:count], cursor=1, working_set=size, seconds=seconds)
                by_count[count].append(result.rate)
    plain, non_temporal = (
        {count: summarise(values, "MB/s") for count, values in by_count.items()}
        for by_count in rates.values()
    )
    return stores.infer(STORES, plain, non_temporal)


def count_starts(cores: int) -> int:
    """How often the functions above start the probe for each repetition, on a first socket of `cores`."""
    return len(_counts(cores)) * (1 + len(CURSORS)) + 2 * len({1, cores})


def _working_set(machine: Machine, cores: int) -> int:
    """Bytes of each of these cores."""
    return max(LEAST_SET, OVER_CACHE * machine.last_level_cache // cores)


def first_cores(machine: Machine, layout: Layout) -> list[int]:
    """The usable cores of the first socket."""
    return sorted(layout.first & set(machine.allowed)) or sorted(machine.allowed)


def _counts(cores: int) -> Sequence[int]:
    """1, all, and some in between."""
    return sorted({round(one) for one in np.geomspace(1, cores, min(cores, COUNTS)).tolist()})


def _bytes(result: KernelRate, name: str, cursor: int) -> float:
    """MB/s of the algorithm's bytes, of a rate in MB/s or Mflop/s."""
    kernel = find(name)
    assert kernel is not None
    if result.unit == "Mflop/s":
        return result.rate * kernel.algorithmic_bytes / (kernel.flops * cursor)
    return result.rate


def _row(case: tuple[int, str, int], values: Sequence[float], data: FitData) -> LoadRow:
    """In terms of the calibrated kernel, by what both move on the bus (models/run_data.py)."""
    count, name, cursor = case
    kernel, own = find(name), find(data.curves.kernel)
    assert kernel is not None
    assert own is not None
    factor = data.store_factor or ASSUMED_STORE_FACTOR
    scale = kernel.bus_share(factor) / own.bus_share(factor)
    intensity = kernel.flops * cursor / kernel.algorithmic_bytes * scale if kernel.uses_cursor else 0.0
    middle = float(np.median(values))
    spread = float(np.std(values, ddof=1) / middle / np.sqrt(len(values))) if len(values) > 1 else None
    return LoadRow(
        load=Load(computing=(Computing(socket=0, node=0, count=count, intensity=intensity),)),
        comp_alone=middle / scale,
        spread=(spread, None, None, None),
        kernel="" if name == data.curves.kernel else name,
        source=f"{name} x {cursor} on {count} cores",
    )
