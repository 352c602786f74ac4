"""Which nodes, switch pairs and node pairs are worse than healthy ones: pure functions, no machine.

Two stages. *Screening*: what has a median loss beyond the tolerance is a candidate. *Confirmation*:
candidates are measured again, and only the fresh values count, so that the test is not of the values that
raised the suspicion. Logs have no second stage: all values count, and all nodes and quantities are tests.

The test of many values (SIGNS of them) is the sign test: of a healthy candidate at most half of the values
lose more than the tolerance, whatever their distribution. Of fewer values it is a robust z with tails of
Student's t of 4 degrees, whose scale comes from all nodes. Holm's procedure over the tests of a site keeps
the chance of any false alarm at `alpha`: half of it is for the tolerances, which the most extreme healthy
node must not reach, a quarter for the tests of nodes, a quarter for those of pairs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import msgspec
import numpy as np
from scipy.special import bdtrc, stdtr, stdtrit

from elbowroom.accept.losses import (
    LEAST_ERROR,
    Layouts,
    LevelModel,
    as_losses,
    fit_levels,
    pair_keys,
    quantity_rows,
    spread_of,
)
from elbowroom.accept.quantities import WAITING, SiteQuantity
from elbowroom.accept.readings import Floats, Ints, Readings, SiteReadings, row_medians, rows_by, take

ALPHA = 0.01
"""Chance of one false alarm or more on a healthy site, over all nodes and quantities."""
SIGNS = 16
"""Values from which signs alone decide."""
FREEDOM = 4
"""Degrees of freedom of the t tails: latencies and bandwidths of real sites have tails about as heavy."""
SMALLEST = 1e-300
DISTURBED = 0.05
"""Share of the time in which the threads of the median node wait for a core, from which its other quantities
say more of other programs than of the node. Tolerances begin at 2 %, and kernel threads take less than 1 %.
"""


class NodeLoss(msgspec.Struct, frozen=True, kw_only=True):
    """What a node loses in a quantity, with a 95 % interval, in logarithms or shares of time; `chance`: that
    a healthy node seems to lose that much, corrected for the number of tests.
    """

    node: int
    quantity: SiteQuantity
    way: str
    loss: float
    low: float | None
    high: float | None
    values: int
    chance: float


class PathLoss(msgspec.Struct, frozen=True, kw_only=True):
    """The same of a pair of switches or of nodes, by their numbers."""

    between: tuple[int, int]
    switches: bool
    quantity: SiteQuantity
    loss: float
    values: int
    chance: float


class Suspicion(msgspec.Struct, frozen=True, kw_only=True):
    """What should be measured again: nodes by number, and pairs of switches."""

    nodes: tuple[int, ...]
    paths: tuple[tuple[int, int], ...]

    def __bool__(self) -> bool:
        return bool(self.nodes or self.paths)


class FittedSite(msgspec.Struct, frozen=True, kw_only=True):
    """The readings of a site with its levels, and the candidates of the screening: (model, node) pairs, and
    pairs of switches by quantity. `disturbed`: as of AcceptanceDocument.
    """

    site: SiteReadings
    models: tuple[LevelModel, ...]
    nodes: tuple[tuple[int, int], ...]
    paths: Mapping[str, tuple[tuple[int, int], ...]]
    disturbed: float = 0.0

    @property
    def suspicion(self) -> Suspicion:
        """The candidates of all quantities."""
        return Suspicion(
            nodes=tuple(sorted({node for _, node in self.nodes})),
            paths=tuple(sorted({path for paths in self.paths.values() for path in paths})),
        )


def fit_site(site: SiteReadings, alpha: float = ALPHA) -> FittedSite:
    """The levels of a site, and what is suspected by its first rounds. Pairs of switches that are suspected
    say nothing of their nodes: the levels are those of the others. On a disturbed site, quantities that need
    the cores have a level, and no node is judged by them.
    """
    models = fit_levels(site, alpha / 2)
    waiting = next((one.values for one in site.readings if one.quantity.name == WAITING), np.zeros(1))
    disturbed = disturbance(float(np.median(waiting)))
    paths: dict[str, tuple[tuple[int, int], ...]] = {}
    for model in models:
        judged = not (disturbed and model.quantity.needs_cores)
        if model.way == "sent" and site.switches is not None and judged:
            paths[model.quantity.name] = _slow_switch_pairs(site, model)
    bad = {path for slow in paths.values() for path in slow}
    if bad:
        models = fit_levels(without_paths(site, bad), alpha / 2)
    if disturbed:
        models = [model.not_judged() if model.quantity.needs_cores else model for model in models]
    nodes = [
        (number, int(node))
        for number, model in enumerate(models)
        for node in np.flatnonzero(np.nan_to_num(model.own) > model.tolerance)
    ]
    return FittedSite(site=site, models=tuple(models), nodes=tuple(nodes), paths=paths, disturbed=disturbed)


def disturbance(waiting: float) -> float:
    """The share of the time in which threads wait for a core, if it is beyond DISTURBED, else 0."""
    return waiting if waiting > DISTURBED else 0.0


def without_paths(site: SiteReadings, paths: Collection[tuple[int, int]]) -> SiteReadings:
    """The site without the values between these pairs of switches, which say nothing of their nodes."""
    if site.switches is None:
        return site
    width = int(site.switches.max()) + 1
    bad = [first * width + second for first, second in paths]
    readings = []
    for one in site.readings:
        if one.partners is None:
            readings.append(one)
            continue
        keep = ~np.isin(_switch_pairs(one, one.partners, site.switches), bad)
        readings.append(
            msgspec.structs.replace(
                one, nodes=one.nodes[keep], partners=one.partners[keep], values=one.values[keep]
            )
        )
    return msgspec.structs.replace(site, readings=tuple(readings))


def judge_nodes(fitted: FittedSite, fresh: SiteReadings | None, alpha: float = ALPHA) -> list[NodeLoss]:
    """The nodes that lose more than healthy ones do, by all quantities; `fresh`: what was measured again of
    the candidates, None where nothing can be.
    """
    source = fitted.site if fresh is None else fresh
    rows = quantity_rows(fitted.models, source, Layouts(source.count))
    candidates = set(fitted.nodes)
    tested: list[NodeLoss] = []
    count = 0
    for number, (model, losses) in enumerate(zip(fitted.models, rows, strict=True)):
        chances = node_chances(losses, model)
        count += int(np.isfinite(chances).sum()) if fresh is None else 0
        for node in np.flatnonzero(np.isfinite(chances)):
            if (number, int(node)) in candidates:
                tested.append(_node_loss(int(node), model, losses[node], float(chances[node])))
    count = count if fresh is None else len(candidates)
    return [
        msgspec.structs.replace(one, chance=chance)
        for one, chance in zip(tested, holm([one.chance for one in tested], count), strict=True)
        if chance <= alpha / 4
    ]


def node_chances(losses: Floats, model: LevelModel) -> Floats:
    """How probably a healthy node loses as much as each row, shape (n, k) with NaN beyond the last value;
    shape (n,), NaN where there is no value.
    """
    known = np.isfinite(losses)
    count = known.sum(axis=1)
    beyond = ((losses > model.tolerance) & known).sum(axis=1)
    signs = np.where(beyond > 0, bdtrc(np.maximum(beyond - 1, 0), np.maximum(count, 1), 0.5), 1.0)
    medians = row_medians(losses)
    tails = np.where(medians > model.tolerance, stdtr(FREEDOM, -medians / model.error), 1.0)
    return np.where(count == 0, np.nan, np.where(count >= SIGNS, signs, tails))


def visible_loss(model: LevelModel, nodes: int, again: bool, alpha: float = ALPHA) -> float:
    """The smallest loss of one node that is tested nearly always, in logarithms; `again`: whether it can be
    measured again.
    """
    if again or model.values >= SIGNS:
        return model.tolerance + 2 * model.noise
    return max(model.tolerance, -float(stdtrit(FREEDOM, alpha / 4 / nodes)) * model.error)


def judge_paths(fitted: FittedSite, fresh: SiteReadings | None, alpha: float = ALPHA) -> list[PathLoss]:
    """The pairs of switches that lose beyond what their nodes lose, by `fresh` values of the candidates;
    where nothing can be measured again and the table has both ways of a pair of nodes, the pairs of nodes.
    """
    tested: list[PathLoss] = []
    if fitted.site.switches is None:
        return judge_node_pairs(fitted, alpha)
    tests = sum(map(len, fitted.paths.values())) if fresh is not None else 0
    for model in fitted.models:
        if model.way != "sent":
            continue
        name = model.quantity.name
        losses = _switch_pair_losses(fitted.site if fresh is None else fresh, model)
        if fresh is None:
            tests += len(losses)
        for path in fitted.paths.get(name, ()):
            values = losses.get(path)
            if values is None:
                continue
            beyond = int((values > model.tolerance).sum())
            chance = float(bdtrc(beyond - 1, values.size, 0.5)) if beyond else 1.0
            tested.append(
                PathLoss(
                    between=path,
                    switches=True,
                    quantity=model.quantity,
                    loss=float(np.median(values)),
                    values=values.size,
                    chance=chance,
                )
            )
    return _significant(tested, tests, alpha)


def judge_node_pairs(fitted: FittedSite, alpha: float = ALPHA) -> list[PathLoss]:
    """The pairs of nodes that are slow both ways, beyond what their nodes lose. A pair that was measured one
    way and once is never suspected: of thousands of pairs, one value of a healthy pair may lose anything.
    """
    tested: list[PathLoss] = []
    tests = 0
    for one in fitted.site.readings:
        model = next(
            (each for each in fitted.models if each.quantity is one.quantity and each.way == "sent"), None
        )
        if one.partners is None or model is None:
            continue
        losses = _beyond_nodes(one, model)
        first, second = np.minimum(one.nodes, one.partners), np.maximum(one.nodes, one.partners)
        _, keys = np.unique(first * fitted.site.count + second, return_inverse=True)
        rows = rows_by(keys, int(keys.max(initial=-1)) + 1)
        if rows.shape[1] < 2:
            continue
        values = take(losses, rows)
        repeated = np.isfinite(values).sum(axis=1) >= 2
        least = np.where(repeated, np.nanmin(values, axis=1), np.nan)
        tests += int(repeated.sum())
        if not repeated.any():
            continue
        # The tail of the least of two values falls twice as fast as theirs. The scale puts the last percent
        # of the pairs where the t distribution has it.
        known = least[repeated]
        scale = max(spread_of(known), float(np.quantile(known, 0.99)) / _T_LAST_PERCENT, LEAST_ERROR)
        slow = np.flatnonzero(np.nan_to_num(least) > model.tolerance)
        for at in slow:
            position = rows[at, 0]
            tested.append(
                PathLoss(
                    between=(int(first[position]), int(second[position])),
                    switches=False,
                    quantity=one.quantity,
                    loss=float(np.nanmedian(values[at])),
                    values=int(np.isfinite(values[at]).sum()),
                    chance=float(stdtr(2 * FREEDOM, -least[at] / scale)),
                )
            )
    return _significant(tested, tests, alpha)


_T_LAST_PERCENT = 2.896
"""Of Student's t with 8 degrees: 1 % of its values are larger."""


def holm(chances: Sequence[float], tests: int) -> list[float]:
    """Probabilities after Holm's correction for so many tests, of which these are the smallest; in the order
    given (Holm, "A Simple Sequentially Rejective Multiple Test Procedure", 1979).
    """
    order = sorted(range(len(chances)), key=lambda at: chances[at])
    corrected, largest = [1.0] * len(chances), 0.0
    for rank, at in enumerate(order):
        largest = max(largest, min(1.0, chances[at] * max(tests - rank, 1)))
        corrected[at] = largest
    return corrected


def score_of(chance: float) -> float:
    """How sure a suspicion is: minus the decimal logarithm of its corrected probability."""
    return round(-float(np.log10(max(chance, SMALLEST))), 1)


def _significant(tested: Sequence[PathLoss], tests: int, alpha: float) -> list[PathLoss]:
    return [
        msgspec.structs.replace(one, chance=chance)
        for one, chance in zip(tested, holm([one.chance for one in tested], tests), strict=True)
        if chance <= alpha / 4
    ]


def _node_loss(node: int, model: LevelModel, losses: Floats, chance: float) -> NodeLoss:
    values = np.sort(losses[np.isfinite(losses)])
    low = high = None
    # Order statistics: their ranks are binomial (Hahn and Meeker, Statistical Intervals, 2017, section 5.2).
    ranks = [rank for rank in range(values.size // 2) if 1 - bdtrc(rank, values.size, 0.5) <= 0.025]
    if ranks:
        low, high = float(values[ranks[-1] + 1]), float(values[-ranks[-1] - 2])
    return NodeLoss(
        node=node,
        quantity=model.quantity,
        way=model.way,
        loss=float(np.median(values)),
        low=low,
        high=high,
        values=values.size,
        chance=chance,
    )


def _beyond_nodes(one: Readings, sent: LevelModel) -> Floats:
    """What each value loses beyond what both of its nodes lose, shape (m,)."""
    losses = as_losses(one.quantity, one.values) - sent.expected(one.nodes, one.partners)
    return losses - np.nan_to_num(sent.own)[one.nodes]


def _switch_pair_losses(site: SiteReadings, sent: LevelModel) -> dict[tuple[int, int], Floats]:
    """The losses of each pair of switches."""
    one = next((each for each in site.readings if each.quantity.name == sent.quantity.name), None)
    if one is None or one.partners is None or site.switches is None:
        return {}
    keys, losses = _switch_pairs(one, one.partners, site.switches), _beyond_nodes(one, sent)
    order = np.argsort(keys, kind="stable")
    starts = np.flatnonzero(np.diff(keys[order], prepend=-2))
    width = int(site.switches.max()) + 1
    return {
        divmod(int(keys[part[0]]), width): losses[part]
        for part in np.split(order, starts[1:])
        if part.size and keys[part[0]] >= 0
    }


def _switch_pairs(one: Readings, partners: Ints, switches: Ints) -> Ints:
    """A number for the pair of switches of each value; -1 inside a switch."""
    inside = switches[one.nodes] == switches[partners]
    return np.where(inside, -1, pair_keys(switches, one.nodes, partners))


def _slow_switch_pairs(site: SiteReadings, sent: LevelModel) -> tuple[tuple[int, int], ...]:
    """The pairs of switches whose median loss is beyond the tolerance."""
    one = next(each for each in site.readings if each.quantity is sent.quantity)
    assert one.partners is not None
    assert site.switches is not None
    keys = _switch_pairs(one, one.partners, site.switches)
    between = keys >= 0
    if not between.any():
        return ()
    losses = _beyond_nodes(one, sent)[between]
    order = np.lexsort((losses, keys[between]))
    ordered = keys[between][order]
    starts = np.flatnonzero(np.diff(ordered, prepend=-2))
    lengths = np.diff(np.append(starts, ordered.size))
    # The lower of two middle values, so that one of two bad ones is not enough.
    medians = losses[order][starts + (lengths - 1) // 2]
    width = int(site.switches.max()) + 1
    return tuple(divmod(int(key), width) for key in ordered[starts][medians > sent.tolerance])
