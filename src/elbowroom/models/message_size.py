"""Bandwidth over message size: a message of s bytes takes t0 + s/B, alone (docs/reference/models.md).

Models are calibrated on one (large) size. For another one, communications ask for D(s) = s/(t0 + s/B) instead
of their bandwidth alone, and everything else stays: what they keep at worst is a part of what they ask for.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from elbowroom.errors import UsageError
from elbowroom.models.threshold.law import Parameters, Threshold

SIZES_NEEDED = 3
"""Two sizes always fit a line exactly: how well the law holds shows from the third on."""


class MessageBandwidth(msgspec.Struct, frozen=True, kw_only=True):
    """Communications alone: messages of `size` bytes into `node` reached `bandwidth` MB/s."""

    node: int
    size: int
    bandwidth: float


class MessageSize(msgspec.Struct, frozen=True, kw_only=True):
    """The law, one t0 for all nodes: `t0` in microseconds with its 90 % interval [`low`, `high`]; fitted on
    `sizes` (bytes), where it misses the bandwidths by `misfit` on average (relative).
    """

    t0: float
    low: float
    high: float
    sizes: tuple[int, ...]
    misfit: float

    def bandwidth(self, size: int, *, known: float, at: int) -> float:
        """MB/s of messages of `size` bytes, where those of `at` bytes reach `known`.

        UsageError where t0 alone exceeds the time that a message of `at` bytes takes.
        """
        rest = at / known - self.t0
        if size <= 0 or rest < 0:
            raise UsageError(
                "has no bandwidth by the law of this model",
                field="size",
                value=size,
                hint="ask for at least 1 B"
                if size <= 0
                else f"{known:g} MB/s of {at} B contradict t0 = {self.t0:g} us: fit again",
            )
        return size / (self.t0 + rest * (size / at))

    def extrapolated(self, size: int) -> bool:
        """Whether the law was fitted on smaller or larger messages only."""
        return not min(self.sizes) <= size <= max(self.sizes)


def fit(observations: Sequence[MessageBandwidth]) -> MessageSize:
    """The law that fits the times best, relative to each; B of each node is fitted beside t0, and left.

    Least squares on (t0 + s/B)/t - 1, t0 >= 0; the interval follows from the residuals (Student's t). Raises
    UsageError for fewer than three sizes, or a size or a bandwidth that is not positive.
    """
    import numpy as np
    from scipy.optimize import lsq_linear
    from scipy.stats import t as student

    sizes = tuple(sorted({item.size for item in observations}))
    if len(sizes) < SIZES_NEEDED:
        raise UsageError(
            f"are too few for t0 and B: the law needs {SIZES_NEEDED} of them",
            field="message sizes",
            value=len(sizes),
            hint="measure more: elbowroom run model --sizes 64KiB,1MiB,64MB",
        )
    for item in observations:
        if item.size <= 0 or not item.bandwidth > 0:
            raise UsageError(
                "is not a bandwidth" if item.size > 0 else "is not a message size",
                field="bandwidth" if item.size > 0 else "size",
                value=item.bandwidth if item.size > 0 else item.size,
                hint="leave that point out",
            )
    nodes = sorted({item.node for item in observations})
    matrix = np.zeros((len(observations), 1 + len(nodes)))
    for row, item in enumerate(observations):
        time = item.size / item.bandwidth
        matrix[row, 0] = 1 / time
        matrix[row, 1 + nodes.index(item.node)] = item.size / time
    solution = lsq_linear(matrix, np.ones(len(matrix)), bounds=(0, np.inf), method="bvls").x
    residuals = matrix @ solution - 1
    freedom = max(len(matrix) - matrix.shape[1], 1)
    covariance = np.linalg.pinv(matrix.T @ matrix) * (residuals @ residuals) / freedom
    half = float(student.ppf(0.95, freedom) * np.sqrt(covariance[0, 0]))
    t0 = float(solution[0])
    return MessageSize(
        t0=t0,
        low=max(t0 - half, 0.0),
        high=t0 + half,
        sizes=sizes,
        misfit=float(np.mean(np.abs(residuals / (1 + residuals)))),
    )


def threshold_at(model: Threshold, law: MessageSize, *, at: int, size: int) -> Threshold:
    """The model, calibrated with messages of `at` bytes, for messages of `size` bytes."""

    def changed(side: Parameters | None) -> Parameters | None:
        if side is None or size == at:
            return side
        return msgspec.structs.replace(side, b_comm_seq=law.bandwidth(size, known=side.b_comm_seq, at=at))

    return msgspec.structs.replace(model, local=changed(model.local), remote=changed(model.remote))


def fit_if_known(sizes: Sequence[MessageBandwidth]) -> MessageSize | None:
    """The law that fits those bandwidths; None where too few sizes were measured for it."""
    return fit(sizes) if len({item.size for item in sizes}) >= SIZES_NEEDED else None
