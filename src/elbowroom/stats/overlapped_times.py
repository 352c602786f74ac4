"""How much of two activities is overlapped: three measures of one pair of times alone and one together."""

from __future__ import annotations

import msgspec


class OverlappedTimes(msgspec.Struct, frozen=True, kw_only=True):
    """Computation and communication alone (T_M, T_N), and both together (T_tot), in any one unit.

    `sequence`: one after the other, where that was measured; otherwise it is T_M + T_N.
    """

    comp: float
    comm: float
    together: float
    sequence: float | None = None

    @property
    def serial(self) -> float:
        """One after the other."""
        return self.comp + self.comm if self.sequence is None else self.sequence

    @property
    def overlap(self) -> float | None:
        """(serial - together) / min(T_M, T_N), unclamped: 1 hides the shorter one, below 0 overlapping costs.

        None if a side takes no time.
        """
        shorter = min(self.comp, self.comm)
        return (self.serial - self.together) / shorter if shorter > 0 else None

    @property
    def osu_overlap(self) -> float | None:
        """max(0, 1 - (T_tot - T_M) / T_N): OSU's formula with the computation alone. osu_iallreduce itself
        subtracts the computation beside the message (stats/overlap/measures.py).
        """
        return max(0.0, 1 - (self.together - self.comp) / self.comm) if self.comm > 0 else None

    @property
    def fraction_of_ideal(self) -> float | None:
        """(serial - together) / (serial - max(T_M, T_N)): 1 is perfect, 0 none, below 0 worse than one after
        the other. It is the overlap unless `sequence` was measured. None if nothing can be hidden.
        """
        hidable = self.serial - max(self.comp, self.comm)
        return (self.serial - self.together) / hidable if hidable > 0 else None
