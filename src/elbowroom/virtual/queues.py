"""Streams of the network of credits that also wait for something of their own: arithmetic, or the wire.

Such a stream is a closed loop of m customers that are served one at a time and then spend the latency L of
virtual/network.py in memory. By the mean value analysis of closed queueing networks in Schweitzer's
approximation (Lazowska et al., Quantitative System Performance, 1984, chapter 6) a service of length S takes,
with its wait, S / (1 - u (m - 1)/m), u being the server's use.

**Cores** of arithmetic intensity I: m line-fill buffers each, S = 64 B x I / peak. A core is slower than both
its memory and its arithmetic, most where they are equal, and reaches either where the other is nothing.

**Messages** of s bytes, m at a time. One takes a set-up outside of memory; its first line is there after L,
the others follow at the wire's rate B, or as their credits C come back, which is C / L when memory is slow.
With f = latency of the smallest message on an idle machine less that of its lines, one message at a time
takes

    f + L + s max(1/B, L/C)

so that its latency as well as its bandwidth suffer when L grows. Several at a time wait for the wire (S =
s/B) or for the credits (S = s L/C). Many large messages are the stream of lines that virtual/credits.py
knows.
"""

from __future__ import annotations

import math

from elbowroom.virtual.network import Stream


def served(rate: float, capacity: float, size: float, customers: int) -> tuple[float, float]:
    """What a loop's round at that rate (MB/s) leaves for memory, us, and its slope: all its customers' bytes
    over the rate, less the service with its wait. `size`: bytes of a customer.
    """
    # m s / rate - (s / capacity) / (1 - rate / capacity (m - 1)/m), without the difference of alike numbers.
    others = (customers - 1) / customers
    free = capacity - others * rate
    left = customers * size * (capacity - rate) / (rate * free)
    return left, -customers * size / (rate * rate) - size * others / (free * free)


class Cores(Stream, frozen=True, kw_only=True):
    """Cores with `buffers` lines under way each; arithmetic of them all does `capacity` MB/s."""

    buffers: int
    capacity: float

    def idle(self) -> float:
        """About the rate on an idle machine, MB/s: where to begin."""
        return min(self.most, 1 / (self.latency / self.credits + 1 / self.capacity))

    def bearable(self, rate: float) -> tuple[float, float]:
        """The latency of memory (us) with which they reach that rate, and its slope."""
        return served(rate, self.capacity, self.credits / self.buffers, self.buffers)


class MessageStream(Stream, frozen=True, kw_only=True):
    """`in_flight` messages of `size` bytes at a time. `credits` (bytes), `latency` (us, of a line) and `most`
    (MB/s) are the NIC's, `setup` f (us).
    """

    size: float
    in_flight: int
    setup: float

    def idle(self) -> float:
        """About the rate on an idle machine, MB/s: where to begin."""
        one = self.setup + self.latency * (1 + self.size / self.credits)
        return min(self.most, self.credits / self.latency, self.in_flight * self.size / one)

    def circulating(self) -> float:
        """Bytes of the messages on their way, not only of the lines."""
        return max(self.credits, self.in_flight * self.size)

    def bearable(self, rate: float) -> tuple[float, float]:
        """The latency of lines (us) with which messages reach that rate, and its slope."""
        return min(self._by_wire(rate), self._by_credits(rate))

    def _by_wire(self, rate: float) -> tuple[float, float]:
        left, slope = served(rate, self.most, self.size, self.in_flight)
        return left - self.setup, slope

    def _by_credits(self, rate: float) -> tuple[float, float]:
        """The part of the credits in use, x, solves m s / rate = f + L + (s L/C) / (1 - x (m - 1)/m) with
        L = x C / rate.
        """
        others = (self.in_flight - 1) / self.in_flight
        left = self.in_flight * self.size - self.setup * rate
        half = self.credits + self.size + left * others
        root = math.sqrt(half * half - 4 * self.credits * others * left)
        used = 2 * left / (half + root)
        growth = -self.setup * (1 - others * used) / root
        latency = used * self.credits / rate
        return latency, (growth * self.credits - latency) / rate
