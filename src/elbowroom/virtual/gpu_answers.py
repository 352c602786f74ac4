"""A virtual GPU's answers to the requests of `gpu-streams` (docs/reference/gpu-bench.md); no time passes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any

from elbowroom.errors import UsageError
from elbowroom.points.point import Unit
from elbowroom.virtual.gpu import Gpu
from elbowroom.virtual.gpu_rates import Host, Value, gpu_rates, product_fits
from elbowroom.virtual.gpu_sides import LETTERS, Side, held, sides_of

FLAG = "virtual"
STREAM_NAMES = {"cores": "cores", "copy": "copies", "messages": "messages"}
"""How results call the streams of a case of three."""

Factors = Callable[[int, int], Sequence[Sequence[float]]]
"""Factors of noise by phase and side, for so many of each."""


def refuse_case(gpu: Gpu, host: Host, case: Mapping[str, Any]) -> str:
    """Why a case cannot be answered; empty where it can."""
    try:
        sides = list(sides_of(case).values())
        if held(sides) >= gpu.sms:
            return f"{held(sides)} SMs are to be held, and {gpu.name} has {gpu.sms}"
        for side in sides:
            if side.kind == "gemm" and not product_fits(gpu, side, sides):
                return "no SMs are left that a product fits on; hold fewer SMs"
        for count in range(1, len(sides) + 1):
            for phase in combinations(sides, count):
                gpu_rates(gpu, host, phase)
    except UsageError as error:
        return error.sentence()
    return ""


def answer_case(
    gpu: Gpu, host: Host, unit: Unit, fields: Mapping[str, Any], factors: Factors
) -> dict[str, Any]:
    """The record of one repetition, each phase with its own noise."""
    sides = sides_of(fields["case"])
    sequence: Sequence[str] = fields["sequence"]
    drawn = factors(len(sequence), len(sides))
    return {
        "record": "repetition",
        "point": unit.point,
        "repetition": unit.repetition,
        "status": "ok",
        "reason": "",
        "flags": [FLAG],
        "phases": [
            _phase(gpu, host, sides, phase, drawn[index]) | {"phase": phase, "index": index}
            for index, phase in enumerate(sequence)
        ],
        "facts": {"sms": gpu.sms},
    }


def _phase(
    gpu: Gpu, host: Host, case: Mapping[str, Side], phase: str, factors: Sequence[float]
) -> dict[str, Any]:
    """The sides of a phase: those of a case of two are `comp` and `comm`, those of three are streams, too."""
    letters = phase.lower()
    values = gpu_rates(gpu, host, [case[letter] for letter in letters])
    record: dict[str, Any] = {
        "start_ns": 0,
        "end_ns": 0,
        "measured_s": 0.0,
        "status": "ok",
        "flags": [FLAG],
    }
    streams: dict[str, Any] = {}
    for letter, value in zip(letters, values, strict=True):
        if value is None:
            continue
        noisy = Value(value.value * factors[LETTERS.index(letter)], value.unit)
        if LETTERS[-1] in case:
            streams[STREAM_NAMES[case[letter].kind]] = {"value": noisy.value, "unit": noisy.unit}
        if letter != LETTERS[-1] and LETTERS[-1] not in letters:
            record |= _side(letter, noisy)
    return record | ({"streams": streams} if streams else {})


def _side(letter: str, value: Value) -> dict[str, Any]:
    name, key = ("comp", "rate") if letter == LETTERS[0] else ("comm", "value")
    return {name: {key: value.value, "unit": value.unit, "batches": [value.value]}}
