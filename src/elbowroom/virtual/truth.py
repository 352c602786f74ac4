"""What a virtual machine knows: every situation's bandwidths, exact and as a noisy run sees them."""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, cast

from elbowroom.errors import UsageError
from elbowroom.models.curves import Shape, Situation, Streams

if TYPE_CHECKING:
    import numpy

MOST_NOISE = 0.2
"""Relative standard deviation above which a normal factor would not stay positive: 5 sigma reach zero."""


class Truth(ABC):
    """A machine whose bandwidths are known by a law instead of a measurement."""

    shape: Shape

    @abstractmethod
    def streams(self, situation: Situation) -> Streams:
        """comp_alone, comm_alone, comp_together, comm_together (MB/s) without noise.

        Without computing cores both bandwidths of the computation are 0. Raises UsageError for a situation
        outside the machine, or one that the law says nothing about.
        """

    def sample(self, situation: Situation, noise: float, rng: numpy.random.Generator) -> Streams:
        """What one run measures: each of the four values times its own normal factor of mean 1.

        `noise` is the factor's standard deviation, 0 to MOST_NOISE; a factor that is not positive is drawn
        again. `rng` comes from `generator`, or is the caller's own.
        """
        check_noise(noise)
        factors = rng.normal(1.0, noise, 4)
        while not (factors > 0).all():
            factors = rng.normal(1.0, noise, 4)
        exact = self.streams(situation)
        return cast(
            "Streams", tuple(value * float(factor) for value, factor in zip(exact, factors, strict=True))
        )


def generator(seed: int, shape: Shape, situation: Situation, repetition: int = 0) -> numpy.random.Generator:
    """Random numbers of their own for every seed, machine, situation and repetition, whatever the order they
    are asked in.
    """
    import numpy

    where = (situation.comp_node, situation.comm_node, situation.n, situation.n_other, repetition)
    return numpy.random.default_rng([seed, zlib.crc32(shape.name.encode()), *where])


def check_noise(noise: float) -> None:
    """Refuses a standard deviation below 0 or above MOST_NOISE (also what is not a number)."""
    if not 0 <= noise <= MOST_NOISE:
        raise UsageError(
            "is not a relative standard deviation of a measurement",
            field="noise",
            value=noise,
            hint=f"0 to {MOST_NOISE:g}, for instance 0.01 for 1 %",
        )


def check_situation(shape: Shape, situation: Situation) -> None:
    """Refuses cores and nodes that the machine does not have; the sentence says which it has."""
    for field, node in (("comp_node", situation.comp_node), ("comm_node", situation.comm_node)):
        if not 0 <= node < shape.nodes:
            raise UsageError(
                f"{shape.name} has no such node", field=field, value=node, hint=f"nodes: 0-{shape.nodes - 1}"
            )
    for field, n, most in (
        ("n", situation.n, shape.cores_first_socket),
        ("n_other", situation.n_other, shape.cores_other),
    ):
        if not 0 <= n <= most:
            raise UsageError(
                f"{shape.name} has not that many cores there", field=field, value=n, hint=f"0 to {most}"
            )
