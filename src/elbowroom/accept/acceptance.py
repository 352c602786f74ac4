"""The examination of a site: measure, judge, measure again what is suspected, and say what is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

import msgspec
import numpy as np
from scipy.special import bdtrc

from elbowroom.accept.causes import FactTable, NamedCause, cause_text, name_cause
from elbowroom.accept.document import (
    AcceptanceDocument,
    MissingNode,
    NodeClass,
    SiteChange,
    SiteLevel,
    Suspect,
)
from elbowroom.accept.draining import drain
from elbowroom.accept.judgement import (
    ALPHA,
    FittedSite,
    NodeLoss,
    PathLoss,
    Suspicion,
    fit_site,
    judge_nodes,
    judge_paths,
    score_of,
    visible_loss,
    without_paths,
)
from elbowroom.accept.losses import Layouts, LevelModel, as_share, kinds_of, quantity_rows
from elbowroom.accept.quantities import BOTH, QUANTITIES
from elbowroom.accept.readings import FEWEST, Ints, SiteReadings, check_site, fold
from elbowroom.errors import UsageError
from elbowroom.quantities import number, percent, plural

SUSPECTS, NOISY = 4, 3
VISIBLE = 0.10
"""A site on which losses of this size of a bandwidth would not be seen is too noisy to accept."""
ONE_CLASS = 2


class MeasuredSite(Protocol):
    """What can be measured, and measured again."""

    def measure(self) -> SiteReadings:
        """The first rounds."""

    def measure_again(self, suspicion: Suspicion) -> SiteReadings:
        """More rounds of what is suspected."""


def examine(source: MeasuredSite, *, name: str, alpha: float = ALPHA) -> AcceptanceDocument:
    """Measures the site, judges it, and measures again what is suspected before it is named."""
    site = source.measure()
    check_site(site, "site")
    fitted = fit_site(site, alpha)
    fresh = source.measure_again(fitted.suspicion) if fitted.suspicion else None
    if fresh is None:
        return _document(fitted, [], [], name, again=True)
    paths = judge_paths(fitted, fresh, alpha)
    if paths:
        bad = [path.between for path in paths]
        fitted, fresh = fit_site(without_paths(site, bad), alpha), without_paths(fresh, bad)
    return _document(fitted, judge_nodes(fitted, fresh, alpha), paths, name, again=True)


def examine_logs(site: SiteReadings, *, name: str, alpha: float = ALPHA) -> AcceptanceDocument:
    """Judges what others measured: nothing can be measured again."""
    check_site(site, "from")
    fitted = fit_site(site, alpha)
    if not any(np.isfinite(model.own).any() for model in fitted.models):
        raise UsageError(
            f"has no value of which {FEWEST} nodes of a kind have one",
            field="from",
            value=name,
            hint="give a folder with logs of the same benchmark, one of each node",
        )
    slow, paths = judge_nodes(fitted, None, alpha), judge_paths(fitted, None, alpha)
    return _document(fitted, slow, paths, name, again=False)


def _document(
    fitted: FittedSite, slow: Sequence[NodeLoss], paths: Sequence[PathLoss], name: str, *, again: bool
) -> AcceptanceDocument:
    site, table = fitted.site, FactTable(fitted.site.facts)
    classes, halves = _classes(fitted, table)
    common = {one.quantity for one in halves.values()}
    alone = {one.node for one in slow if one.quantity.name not in common}
    suspects = [
        *_node_suspects(fitted, [one for one in slow if one.node in alone or one.node not in halves], table),
        *(one for node, one in halves.items() if node not in alone),
        *(_path_suspect(site, path) for path in _one_each(paths)),
    ]
    suspects.sort(key=lambda one: (-one.score, one.node if one.node is not None else -1))
    levels = _levels(fitted, again)
    hidden = [one for one in levels if one.visible is not None and one.visible > VISIBLE and one.rate]
    notes = [f"{one.quantity}: {one.text}" for one in classes if not one.suspect]
    notes += _missing(fitted)
    if fitted.disturbed:
        notes.append(
            "Other programs use the cores: threads that compute wait for one "
            f"{percent(fitted.disturbed, digits=0)} of the time. Only bandwidths between nodes, limits of "
            "control groups and steal are judged"
        )
    if hidden:
        worst = max(hidden, key=lambda one: one.visible or 0.0)
        notes.append(
            f"The site is too noisy: a node that loses {percent(worst.visible or 0.0, digits=0)} in "
            f"{worst.quantity} would not be seen"
        )
    names = sorted({one.name for one in suspects if one.node is not None})
    noisy, draining = bool(hidden or fitted.disturbed), drain(suspects, site.count)
    return AcceptanceDocument(
        site=name,
        verdict=_verdict(suspects, site.count, noisy),
        why=_why(suspects, levels),
        nodes=site.count,
        suspects=tuple(suspects),
        exit_code=SUSPECTS if suspects else NOISY if noisy else 0,
        nodelist=fold(names),
        drain=draining.commands,
        disturbed=fitted.disturbed,
        classes=tuple(classes),
        levels=tuple(levels),
        notes=(*notes, *draining.notes),
        names=site.nodes,
        switches=() if site.switches is None else tuple(int(one) for one in site.switches),
    )


def _verdict(suspects: Sequence[Suspect], nodes: int, noisy: bool) -> str:
    bad = len({one.node for one in suspects if one.node is not None})
    pairs = sum(one.node is None for one in suspects)
    if not suspects:
        but = ", but the site is too noisy to accept it" if noisy else ""
        return f"None of {plural(nodes, 'node')} is a suspect{but}."
    if not bad:
        are = "is" if pairs == 1 else "are"
        return f"None of {plural(nodes, 'node')} is a suspect; {plural(pairs, 'cable')} between them {are}."
    more = f", and {plural(pairs, 'cable')} between nodes" if pairs else ""
    names = fold([one.name for one in suspects if one.node is not None])
    shown = f": {names}" if len(names) <= LONGEST_LIST else ""
    return f"{bad} of {plural(nodes, 'node')} {'is a suspect' if bad == 1 else 'are suspects'}{shown}{more}."


LONGEST_LIST = 60
"""Letters of a folded list that the verdict repeats."""


def _why(suspects: Sequence[Suspect], levels: Sequence[SiteLevel]) -> str:
    """The worst suspect; else the smallest loss that would have been seen, and what both sides cost."""
    if suspects:
        worst = max(suspects, key=lambda one: one.loss)
        return (
            f"Worst: {worst.name}, {cause_text(worst.cause)}: it loses {percent(worst.loss)} of "
            f"{worst.quantity}; {worst.evidence}."
        )
    rates = [one.visible for one in levels if one.rate]
    known = [loss for loss in rates if loss is not None and loss <= VISIBLE]
    visible = max(known, default=None)
    which = "any rate" if len(known) == len(rates) else f"{len(known)} of {plural(len(rates), 'rate')}"
    kept = [f"{one.quantity} keeps {percent(one.kept)}" for one in levels if one.kept is not None]
    texts = (
        [] if visible is None else [f"A node that loses {percent(visible)} of {which} would have been seen."]
    )
    texts += (
        [f"Where all nodes compute and communicate, {' and '.join(kept)} of the value alone."] if kept else []
    )
    return " ".join(texts) or "No loss of a node would have been seen: its values differ too much."


def check_baseline(names: Sequence[str], baseline: AcceptanceDocument, source: str) -> None:
    """UsageError for a baseline, read from `source`, without half of these nodes, or with too many others."""
    same = len({*names} & {*baseline.names})
    if 2 * same < max(len(names), len(baseline.names)):
        raise UsageError(
            f"is of another site: {same} of its {plural(len(baseline.names), 'node')} are among these "
            f"{len(names)}",
            field="baseline",
            value=source,
            hint="give a document of the same nodes",
        )


def _only_one_side(document: AcceptanceDocument, baseline: AcceptanceDocument) -> Iterator[str]:
    """Which nodes only one of two runs has."""
    here, there = {*document.names}, {*baseline.names}
    if here - there:
        yield f"Not in the baseline: {fold(list(here - there))}"
    if there - here:
        yield f"In the baseline only: {fold(list(there - here))}"


def compare_site(document: AcceptanceDocument, baseline: AcceptanceDocument, name: str) -> AcceptanceDocument:
    """The document with what the whole site loses against an earlier run. UsageError for another site."""
    check_baseline(document.names, baseline, name)
    document = msgspec.structs.replace(document, notes=(*document.notes, *_only_one_side(document, baseline)))
    before = {one.quantity: one for one in baseline.levels}
    changes = []
    for one in document.levels:
        old, known = before.get(one.quantity), QUANTITIES.get(one.quantity)
        if old is None or old.unit != one.unit or not (old.median > 0 or one.unit == "share"):
            continue
        if (document.disturbed or baseline.disturbed) and known is not None and known.needs_cores:
            continue
        if one.unit != "share" and not 1 / FOREIGN < one.median / old.median < FOREIGN:
            raise UsageError(
                f"is of another site: {one.quantity} is {number(old.median)} there, "
                f"{number(one.median)} here",
                field="baseline",
                value=name,
                hint="give a document of the same nodes",
            )
        loss = (one.median - old.median) if one.unit == "share" else one.median / old.median - 1
        loss = -loss if one.rate else loss
        if loss > (
            known.tolerance
            if known is not None
            else QUANTITIES["bandwidth" if one.rate else "latency"].tolerance
        ):
            changes.append(SiteChange(quantity=one.quantity, before=old.median, now=one.median, loss=loss))
    if not changes:
        return document
    changes.sort(key=lambda one: -one.loss)
    worst = changes[0]
    drift = f"The whole site loses {percent(worst.loss)} of {worst.quantity} against its baseline."
    return msgspec.structs.replace(
        document,
        changes=tuple(changes),
        exit_code=SUSPECTS,
        verdict=f"{document.verdict.removesuffix('.')}. {drift}" if document.suspects else drift,
    )


def with_missing(
    document: AcceptanceDocument, lost: Mapping[str, str], notes: Sequence[str]
) -> AcceptanceDocument:
    """The document with what could not be measured: nodes by name with the reason, which must not be accepted
    either.
    """
    draining = drain(document.suspects, document.nodes, lost)
    every = tuple(dict.fromkeys([*document.notes, *notes, *draining.notes]))
    document = msgspec.structs.replace(document, notes=every)
    if not lost:
        return document
    missing = tuple(MissingNode(name=name, why=why) for name, why in sorted(lost.items()))
    names = sorted({*lost, *(one.name for one in document.suspects if one.node is not None)})
    text = f"{plural(len(missing), 'node')} could not be measured to the end: {fold(list(lost))}"
    return msgspec.structs.replace(
        document,
        missing=missing,
        verdict=f"{document.verdict} {text}.",
        exit_code=SUSPECTS,
        nodelist=fold(names),
        drain=draining.commands,
    )


FOREIGN = 3.0
"""Factor between two medians beyond which they are not of one site."""


def _node_suspects(fitted: FittedSite, slow: Sequence[NodeLoss], table: FactTable) -> list[Suspect]:
    by_node: dict[int, list[NodeLoss]] = {}
    for one in slow:
        by_node.setdefault(one.node, []).append(one)
    suspects = []
    for node, losses in by_node.items():
        losses.sort(key=lambda one: (one.chance, -one.loss))
        shares = _shares(fitted.models, node)
        shown = list(dict.fromkeys(one.quantity.name for one in losses))
        cause = name_cause(shares, shown, table.unusual(node))
        suspects.append(_suspect(fitted.site, node, losses, cause))
    return suspects


def _shares(models: Sequence[LevelModel], node: int) -> dict[str, float]:
    """What a node loses in each quantity, the worse of both ways."""
    shares: dict[str, float] = {}
    for model in models:
        own = float(model.own[node])
        if np.isfinite(own):
            share = as_share(model.quantity, own)
            shares[model.quantity.name] = max(share, shares.get(model.quantity.name, share))
    return shares


def _suspect(site: SiteReadings, node: int, losses: Sequence[NodeLoss], cause: NamedCause) -> Suspect:
    shown = max(
        (one for one in losses if one.quantity.name == cause.quantity),
        key=lambda one: one.loss,
        default=losses[0],
    )
    ends = [None if end is None else as_share(shown.quantity, end) for end in (shown.low, shown.high)]
    return Suspect(
        node=node,
        name=site.nodes[node],
        quantity=shown.quantity.name,
        cause=cause.cause,
        score=score_of(min(one.chance for one in losses)),
        loss=as_share(shown.quantity, shown.loss),
        low=ends[0],
        high=ends[1],
        values=shown.values,
        evidence=cause.evidence,
        also=tuple(
            name for name in dict.fromkeys(one.quantity.name for one in losses) if name != cause.quantity
        ),
    )


def _one_each(paths: Sequence[PathLoss]) -> list[PathLoss]:
    """Of each pair of switches or nodes the surest quantity."""
    best: dict[tuple[int, int], PathLoss] = {}
    for one in sorted(paths, key=lambda one: (one.chance, -one.loss)):
        best.setdefault(one.between, one)
    return list(best.values())


def _path_suspect(site: SiteReadings, path: PathLoss) -> Suspect:
    first, second = path.between
    ends = (
        f"switches {first} and {second}" if path.switches else f"{site.nodes[first]} and {site.nodes[second]}"
    )
    members: list[Ints] = (
        [np.flatnonzero(site.switches == one) for one in path.between]
        if path.switches and site.switches is not None
        else [np.array([one]) for one in path.between]
    )
    folded = [fold([site.nodes[int(node)] for node in part]) for part in members]
    return Suspect(
        node=None,
        name=ends,
        quantity=path.quantity.name,
        cause="cable",
        score=score_of(path.chance),
        loss=as_share(path.quantity, path.loss),
        values=path.values,
        evidence=f"only messages between {folded[0]} and {folded[1]} are slow",
        between=path.between,
    )


def _classes(fitted: FittedSite, table: FactTable) -> tuple[list[NodeClass], dict[int, Suspect]]:
    """The classes of nodes in each quantity, and by number the suspects among them: slow ones whose hardware
    is the same as that of the others.
    """
    site, kinds = fitted.site, kinds_of(fitted.site)
    classes, halves = list[NodeClass](), dict[int, Suspect]()
    shown: set[str] = set()
    for model in fitted.models:
        numbers = [int(one) for one in np.unique(model.labels) if np.isfinite(model.centres[one])]
        if len(numbers) < ONE_CLASS or model.quantity.name in shown:
            continue
        shown.add(model.quantity.name)
        numbers.sort(key=lambda one: float(model.centres[one]))
        for label in numbers[1:]:
            members = np.flatnonzero(model.labels == label)
            best = _best_like(label, numbers, model, kinds)
            others = np.flatnonzero(model.labels == best)
            loss = as_share(model.quantity, float(model.centres[label] - model.centres[best]))
            if loss <= model.quantity.tolerance:
                continue
            fact = table.explains([int(one) for one in others], [int(one) for one in members])
            alike = _half(site, members, model, best, fact)
            sure = sum(one.score >= SURE for one in alike) > len(members) / 2
            suspect = bool(site.facts) and fact not in HARDWARE and sure and not fitted.disturbed
            folded = fold([site.nodes[int(node)] for node in members])
            classes.append(
                NodeClass(
                    quantity=model.name,
                    nodes=folded,
                    count=len(members),
                    loss=loss,
                    fact=fact,
                    suspect=suspect,
                    text=_class_text(len(members), site, loss, fact, sure, bool(fitted.disturbed)),
                )
            )
            if suspect:
                for one in alike:
                    halves.setdefault(one.node or 0, one)
    return classes, halves


def _best_like(label: int, numbers: Sequence[int], model: LevelModel, kinds: Ints) -> int:
    """The best class that a class is compared with: of its own kind of nodes, or of all where it is the best
    of its kind. `numbers`: of all classes, the best first.
    """
    if model.quantity.between:
        return numbers[0]  # its classes are of all kinds
    kind_of = {one: kinds[int(np.argmax(model.labels == one))] for one in numbers}
    best = next(one for one in numbers if kind_of[one] == kind_of[label])
    return numbers[0] if best == label else best


FACTS_OF_CLASSES = ("governor", "bios", "kernel", "link")
"""Facts that are the cause where a class of nodes has another one."""
HARDWARE = ("architecture", "processor", "memory", "nic", "feature")
"""Facts that make a class of nodes a kind of its own: it is another machine, not a worse one."""


SURE = 2.0
"""Score of more than half of a class of slow nodes, without which its values are noise."""


def _class_text(count: int, site: SiteReadings, loss: float, fact: str, sure: bool, disturbed: bool) -> str:
    nodes = f"{plural(count, 'node')} of {site.count}"
    share = f"{nodes} are a class of their own, {percent(loss)} worse than the best"
    if fact:
        return f"{share}; they have another {fact}"
    if not site.facts:
        return f"{share}; nothing is known of their hardware, so they are not flagged"
    if not sure:
        return f"{share}; their values differ too much to say so of each of them"
    return f"{share}; other programs use the cores, so they are not flagged" if disturbed else share


def _half(site: SiteReadings, members: Ints, model: LevelModel, best: int, fact: str) -> list[Suspect]:
    cause = next((one for one in FACTS_OF_CLASSES if one == fact), "half")
    evidence = f"{plural(len(members), 'node')} of {site.count} are slow together"
    if fact:
        evidence += f", and have another {fact}"
    [rows] = quantity_rows([model], site, Layouts(site.count))
    beyond_best = rows[members] + (model.centres[model.labels[members]] - model.centres[best])[:, None]
    known = np.isfinite(beyond_best)
    slow = int((known & (beyond_best > model.tolerance)).sum())
    score = score_of(float(bdtrc(slow - 1, int(known.sum()), 0.5)) if slow else 1.0)
    return [
        Suspect(
            node=int(node),
            name=site.nodes[int(node)],
            quantity=model.quantity.name,
            cause=cause,
            score=score,
            loss=as_share(model.quantity, float(np.nanmedian(losses))),
            values=int(np.isfinite(losses).sum()),
            evidence=evidence,
        )
        for node, losses in zip(members, beyond_best, strict=True)
    ]


def _levels(fitted: FittedSite, again: bool) -> list[SiteLevel]:
    """The median of each quantity on the site, and the smallest loss of a node that is seen."""
    levels = []
    medians: dict[str, float] = {}
    for one in fitted.site.readings:
        medians[one.quantity.name] = float(np.median(one.values))
        models = [model for model in fitted.models if model.quantity is one.quantity]
        judged = [model for model in models if np.isfinite(model.own).any()]
        visible = max((visible_loss(model, fitted.site.count, again) for model in judged), default=None)
        alone = next((name for name, beside in BOTH.items() if beside == one.quantity.name), None)
        levels.append(
            SiteLevel(
                quantity=one.quantity.name,
                unit=one.quantity.unit,
                median=medians[one.quantity.name],
                spread=max(each.spread for each in models),
                visible=None if visible is None else as_share(one.quantity, visible),
                rate=one.quantity.more_is_better,
                kept=medians[one.quantity.name] / medians[alone] if alone in medians else None,
            )
        )
    return levels


def _missing(fitted: FittedSite) -> list[str]:
    """What could not be judged."""
    notes = []
    unjudged: dict[str, list[str]] = {}
    for model in fitted.models:
        if fitted.disturbed and model.quantity.needs_cores:
            continue
        for node in np.flatnonzero(~np.isfinite(model.own)):
            unjudged.setdefault(fitted.site.nodes[int(node)], []).append(model.name)
    grouped: dict[tuple[str, ...], list[str]] = {}
    for name, quantities in unjudged.items():
        grouped.setdefault(tuple(quantities), []).append(name)
    for unknown, nodes in grouped.items():
        why = "no value, or fewer than 3 nodes are of their kind"
        notes.append(f"Not judged: {', '.join(unknown)} of {fold(nodes)}: {why}")
    return notes
