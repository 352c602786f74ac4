"""What each value loses against its site: value = site + class + node + partner + noise, in logarithms.

A quantity of nodes has one *way*, its own; one between nodes has two, `sent` and `received`, since a node may
be slow in one of them. Effects are medians, repeated for both ways until they settle (median polish; Tukey,
Exploratory Data Analysis, 1977): a few slow nodes, partners or rounds move none of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal

import msgspec
import numpy as np
from scipy.special import ndtri

from elbowroom.accept.quantities import SiteQuantity
from elbowroom.accept.readings import Floats, Ints, Readings, SiteReadings, row_medians, rows_by, take

Way = Literal["", "sent", "received"]
LEAST_ERROR = 1e-4
"""Deviations below this are rounding: values have four to five digits."""
SWEEPS = 4
"""Sweeps of the polish; the effects of pairs are settled to 0.01 % after three."""
LEAST_CLASS = 0.2
"""Part of the nodes from which a group that differs is a class of its own, and not a set of suspects."""
FEW_NODES = 3
APART = 6.0
"""Distance of two classes in units of their own spread."""
CLASSES = 4
IDENTITY = ("architecture", "processor", "feature")
"""Facts that make nodes different kinds, however few they are."""
CERTAIN = 300
"""Nodes from which the fastest 1 % say how heavy the tails are."""


class LevelModel(msgspec.Struct, frozen=True, kw_only=True):
    """What is usual in one quantity and way: loss of a value = its logarithm - `expected` of where it was
    measured. `labels`: the class of each node, shape (n,); `own`: what each node loses against its class.
    `spread`: standard deviation of healthy nodes, `noise`: of the `values` of one; `tolerance`: what a
    healthy node may lose.
    """

    quantity: SiteQuantity
    way: Way
    labels: Ints
    centres: Floats
    own: Floats
    spread: float
    noise: float
    values: float
    tolerance: float
    expected: Callable[[Ints, Ints | None], Floats]

    @property
    def error(self) -> float:
        """Standard deviation of what a healthy node seems to lose."""
        return max(self.spread, self.noise / math.sqrt(max(self.values, 1.0)), LEAST_ERROR)

    @property
    def name(self) -> str:
        """`bandwidth sent`."""
        return f"{self.quantity.name} {self.way}".rstrip()

    def not_judged(self) -> LevelModel:
        """The same level without classes, and without what each node loses."""
        nothing = np.full(len(self.own), np.nan)
        labels = np.zeros_like(self.labels)
        return msgspec.structs.replace(self, labels=labels, centres=np.array([np.nan]), own=nothing)


def as_losses(quantity: SiteQuantity, values: Floats) -> Floats:
    """Logarithms of values, or shares of time, with the sign that makes worse ones larger; shape as given."""
    if quantity.additive:
        return values
    logs: Floats = np.log(values)
    return -logs if quantity.more_is_better else logs


def as_share(quantity: SiteQuantity, loss: float) -> float:
    """The share of the quantity that a loss is: 0.05 of a bandwidth that is 5 % lower, or a latency 5 %
    longer.
    """
    if quantity.additive:
        return loss
    return float(-np.expm1(-loss) if quantity.more_is_better else np.expm1(loss))


def as_loss(quantity: SiteQuantity, share: float) -> float:
    """The inverse of `as_share`."""
    if quantity.additive:
        return share
    return float(-np.log1p(-share) if quantity.more_is_better else np.log1p(share))


def fit_levels(site: SiteReadings, alpha: float) -> list[LevelModel]:
    """The usual levels of each quantity of a site, from all of its readings. `alpha`: how probably any
    healthy node of the site may exceed its tolerance.
    """
    kinds, layouts = kinds_of(site), Layouts(site.count)
    tests = site.count * sum(1 + one.quantity.between for one in site.readings)
    bound = float(-ndtri(alpha / tests))
    models: list[LevelModel] = []
    for one in site.readings:
        if one.partners is None:
            models.append(_local(one, kinds, layouts, bound))
        else:
            models += _between(one, one.partners, kinds, site.switches, layouts, bound)
    return models


class Layouts:
    """`rows_by` of arrays, each made once."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._known: dict[int, tuple[Ints, Ints]] = {}

    def rows(self, index: Ints) -> Ints:
        """The positions that belong to each node."""
        if id(index) not in self._known:
            self._known[id(index)] = index, rows_by(index, self.count)
        return self._known[id(index)][1]


def kinds_of(site: SiteReadings) -> Ints:
    """A number for each node: equal where its facts of IDENTITY are; shape (n,)."""
    facts = [site.facts[name] for name in IDENTITY if name in site.facts]
    if not facts:
        return np.zeros(site.count, dtype=np.int64)
    known: dict[tuple[str, ...], int] = {}
    return np.array([known.setdefault(key, len(known)) for key in zip(*facts, strict=True)])


def _local(one: Readings, kinds: Ints, layouts: Layouts, bound: float) -> LevelModel:
    losses = take(as_losses(one.quantity, one.values), layouts.rows(one.nodes))
    levels = row_medians(losses)
    labels, centres = classes_of(levels, kinds, one.quantity.tolerance)
    own = levels - centres[labels]
    return _model(
        one.quantity, "", labels, centres, own, losses - levels[:, None], bound, _Usual(centres[labels])
    )


class _Usual:
    """What a value is expected to be, by node and partner."""

    def __init__(
        self, nodes: Floats, partners: Floats | None = None, groups: _PairLevels | None = None
    ) -> None:
        self._nodes, self._partners, self._groups = nodes, partners, groups

    def __call__(self, nodes: Ints, partners: Ints | None) -> Floats:
        expected: Floats = self._nodes[nodes]
        if partners is not None and self._partners is not None and self._groups is not None:
            expected = expected + self._partners[partners] + self._groups(nodes, partners)
        return expected


class _PairLevels:
    """The levels of pairs by the kinds of both nodes, and whether they are on one switch."""

    def __init__(self, kinds: Ints, switches: Ints | None) -> None:
        self._kinds, self._switches = kinds, switches
        self._levels = np.zeros(2 * (int(kinds.max(initial=0)) + 1) ** 2)

    def _of(self, nodes: Ints, partners: Ints) -> Ints:
        group = pair_keys(self._kinds, nodes, partners)
        near = 0 if self._switches is None else self._switches[nodes] == self._switches[partners]
        return 2 * group + near

    def fit(self, nodes: Ints, partners: Ints, losses: Floats) -> None:
        """Sets each group's level to the median of its values."""
        groups = self._of(nodes, partners)
        self._levels[:] = np.median(losses) if losses.size else 0.0
        for group in np.unique(groups):
            inside = losses[groups == group]
            if inside.size >= FEW_NODES:
                self._levels[group] = np.median(inside)

    def __call__(self, nodes: Ints, partners: Ints) -> Floats:
        return self._levels[self._of(nodes, partners)]


def _between(
    one: Readings, partners: Ints, kinds: Ints, switches: Ints | None, layouts: Layouts, bound: float
) -> list[LevelModel]:
    groups = _PairLevels(_kinds_that_meet(kinds, switches, one.nodes, partners), switches)
    losses = as_losses(one.quantity, one.values)
    groups.fit(one.nodes, partners, losses)
    losses = losses - groups(one.nodes, partners)
    by_sender, by_receiver = layouts.rows(one.nodes), layouts.rows(partners)
    received = np.zeros(len(by_sender))
    for _ in range(SWEEPS):
        sent = _known(row_medians(take(losses - received[partners], by_sender)))
        received = _known(row_medians(take(losses - sent[one.nodes], by_receiver)))
        received -= np.median(received)
    tolerance = one.quantity.tolerance
    sides = [classes_of(levels, np.zeros_like(kinds), tolerance) for levels in (sent, received)]
    usual = [centres[labels] for labels, centres in sides]
    noise = take(losses - sent[one.nodes] - received[partners], by_sender)
    return [
        _model(
            one.quantity, "sent", *sides[0], sent - usual[0], noise, bound, _Usual(usual[0], received, groups)
        ),
        _model(
            one.quantity,
            "received",
            *sides[1],
            received - usual[1],
            noise,
            bound,
            _Usual(usual[1], sent, groups),
        ),
    ]


FEWEST_PATHS = 3
"""Pairs of switches that show what is usual between two kinds of nodes."""


def _kinds_that_meet(kinds: Ints, switches: Ints | None, nodes: Ints, partners: Ints) -> Ints:
    """The kinds of nodes, shape (n,), or one kind where two of them meet on few pairs of switches only: then
    a bad cable would be taken for what is usual between them.
    """
    if switches is None or not kinds.any():
        return kinds
    groups, paths = pair_keys(kinds, nodes, partners), pair_keys(switches, nodes, partners)
    far = switches[nodes] != switches[partners]
    count = int(groups.max(initial=0)) + 1
    paths_of = np.bincount(np.unique(paths[far] * count + groups[far]) % count)
    few = ((paths_of > 0) & (paths_of < FEWEST_PATHS)).any()
    return np.zeros_like(kinds) if few else kinds


def pair_keys(labels: Ints, nodes: Ints, partners: Ints) -> Ints:
    """A number for the labels of both nodes of each value, in either order; shape (m,)."""
    first, second = labels[nodes], labels[partners]
    keys: Ints = np.minimum(first, second) * (int(labels.max(initial=0)) + 1) + np.maximum(first, second)
    return keys


def _known(levels: Floats) -> Floats:
    """Nodes without a value are as usual."""
    return np.where(np.isfinite(levels), levels, np.nanmedian(levels))


def _model(
    quantity: SiteQuantity,
    way: Way,
    labels: Ints,
    centres: Floats,
    own: Floats,
    noise: Floats,
    bound: float,
    expected: Callable[[Ints, Ints | None], Floats],
) -> LevelModel:
    spread = spread_of(own)
    return LevelModel(
        quantity=quantity,
        way=way,
        labels=labels,
        centres=centres,
        own=own,
        spread=spread,
        noise=spread_of(noise.ravel()),
        values=float(np.median(np.isfinite(noise).sum(axis=1))),
        tolerance=max(as_loss(quantity, quantity.tolerance), bound * spread),
        expected=expected,
    )


def spread_of(losses: Floats) -> float:
    """The standard deviation of healthy values around their median, shape (m,): from the middle half, and
    from the better side, which no fault makes wider.
    """
    known = losses[np.isfinite(losses)]
    if known.size < 2:
        return 0.0
    shares = [
        0.25,
        0.5,
        0.75,
        *([0.05] if known.size >= 40 else []),
        *([0.01] if known.size >= CERTAIN else []),
    ]
    values = np.quantile(known, shares)
    middle = values[1]
    scales = [(middle - value) / -ndtri(share) for share, value in zip(shares[3:], values[3:], strict=True)]
    return float(max((values[2] - values[0]) / 1.349, *scales, 0.0))


def classes_of(levels: Floats, kinds: Ints, tolerance: float) -> tuple[Ints, Floats]:
    """A class for each node, and the centre of each class: nodes of one kind whose levels fall into groups
    that are far apart. Nodes of a kind with too few members have the class of a centre that is NaN.
    """
    labels, centres = np.zeros(len(levels), dtype=np.int64), list[float]()
    for kind in np.unique(kinds):
        members = np.flatnonzero((kinds == kind) & np.isfinite(levels))
        if len(members) < FEW_NODES:
            labels[kinds == kind] = len(centres)
            centres.append(float("nan"))
            continue
        for group in _split(levels, members, tolerance, len(members), CLASSES):
            labels[group] = len(centres)
            centres.append(float(np.median(levels[group])))
    return labels, np.array(centres)


def _split(levels: Floats, members: Ints, tolerance: float, total: int, most: int) -> list[Ints]:
    """Members in groups, the best first."""
    ordered = members[np.argsort(levels[members], kind="stable")]
    least = max(FEW_NODES, int(np.ceil(LEAST_CLASS * total)))
    if most < 2 or len(ordered) < 2 * least:
        return [ordered]
    values = levels[ordered]
    sums = np.cumsum(values)
    cuts = np.arange(least, len(values) - least + 1)
    below, above = sums[cuts - 1] / cuts, (sums[-1] - sums[cuts - 1]) / (len(values) - cuts)
    cut = int(cuts[np.argmax((above - below) ** 2 * cuts * (len(values) - cuts))])
    first, second = values[:cut], values[cut:]
    distance = float(np.median(second) - np.median(first))
    gap = float(np.quantile(second, 0.1) - np.quantile(first, 0.9))
    within = max(spread_of(first), spread_of(second))
    if distance <= tolerance or distance < APART * within or gap < distance / 2:
        return [ordered]
    return [
        *_split(levels, ordered[:cut], tolerance, total, most - 1),
        *_split(levels, ordered[cut:], tolerance, total, most - 1),
    ]


def quantity_rows(models: Sequence[LevelModel], site: SiteReadings, layouts: Layouts) -> list[Floats]:
    """Of each model what each node loses in each of its values, shape (n, k); NaN beyond its last."""
    readings = {one.quantity.name: one for one in site.readings}
    rows: list[Floats] = []
    for model in models:
        one = readings.get(model.quantity.name)
        if one is None:
            rows.append(np.full((site.count, 1), np.nan))
            continue
        index, others = one.nodes, one.partners
        if model.way == "received":
            assert others is not None
            index, others = others, one.nodes
        losses = as_losses(one.quantity, one.values) - model.expected(index, others)
        rows.append(take(losses, layouts.rows(index)))
    return rows
