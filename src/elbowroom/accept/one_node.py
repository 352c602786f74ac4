"""One node beside the baseline of its site: for the prolog or epilog of a job, without a network."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

import msgspec
import numpy as np
from scipy.special import bdtrc

from elbowroom.accept.acceptance import NOISY, SUSPECTS
from elbowroom.accept.allocation import AllocationRequest
from elbowroom.accept.causes import cause_text, name_cause
from elbowroom.accept.document import AcceptanceDocument, SiteLevel, Suspect
from elbowroom.accept.draining import drain
from elbowroom.accept.journal import PARTS, possible
from elbowroom.accept.judgement import ALPHA, SIGNS, disturbance, holm, score_of
from elbowroom.accept.losses import as_loss, as_losses, as_share
from elbowroom.accept.node_jobs import NodeJobs, NodeLaunch
from elbowroom.accept.quantities import QUANTITIES, WAITING
from elbowroom.accept.readings import Floats
from elbowroom.errors import MachineError, UsageError
from elbowroom.quantities import percent

NODE_SECONDS = 30.0
ROUNDS = 24
"""Of which each is a sign: of a healthy node at most half are beyond what healthy ones lose."""
START = 5.0
"""Seconds that starting the probe may take of them."""
WINDOWS = 7
"""Windows of a round of a node alone."""
HERE = ("this node",)


def local(request: AllocationRequest) -> NodeLaunch:
    """How the probe is started on this node: a prolog has no launcher of the allocation."""
    return msgspec.structs.replace(request, launcher="local", hosts=(), hostfile=None).place()


def examine_node(
    request: AllocationRequest,
    baseline: AcceptanceDocument | None,
    source: str,
    tell: Callable[[str], object],
) -> AcceptanceDocument:
    """Measures this node alone for NODE_SECONDS and compares it with the `baseline` of its site, read from
    `source`. UsageError for a baseline of another site, MachineError where nothing could be measured.
    """
    rows: list[list[float | None]] = []
    jobs = NodeJobs(local(request), request.patience)
    try:
        start_time = time.monotonic()
        window = min(0.1, (NODE_SECONDS - START) / ROUNDS / WINDOWS)
        while len(rows) < ROUNDS and (len(rows) < SIGNS or time.monotonic() - start_time < NODE_SECONDS):
            answered = jobs.ask([HERE], lambda _job: {"op": "alone", "ranks": [0], "seconds": window})
            if answered.errors:
                raise MachineError(next(iter(answered.errors.values())), field="node", hint="try again")
            rows += answered.values.values()
            name = next(iter(jobs.names.values()))
            _check_baseline(name, baseline, source)
    finally:
        jobs.close()
    tell(f"measured {len(rows)} times in {time.monotonic() - start_time:.0f} s")
    return judge_node(name, rows, baseline, source)


def judge_node(
    name: str, rows: list[list[float | None]], baseline: AcceptanceDocument | None, source: str
) -> AcceptanceDocument:
    """What a node loses against the medians of its site. `rows`: its values in the order of PARTS["alone"].
    UsageError for a baseline without this node.
    """
    _check_baseline(name, baseline, source)
    columns = {
        quantity: np.array([row[at] for row in rows if possible(row[at], quantity)], dtype=np.float64)
        for at, quantity in enumerate(PARTS["alone"])
    }
    known = {quantity: values for quantity, values in columns.items() if values.size}
    disturbed = disturbance(float(np.median(known[WAITING]))) if WAITING in known else 0.0
    judged = {one: values for one, values in known.items() if not (disturbed and QUANTITIES[one].needs_cores)}
    suspects = () if baseline is None else tuple(_suspects(name, judged, baseline))
    levels = tuple(_levels(known, baseline))
    missing = [quantity for quantity in columns if quantity not in known]
    against = "" if baseline is None else f" against {baseline.site}"
    if baseline is None:
        compared = "Nothing was compared: give --baseline site.json."
    else:
        both = {one.quantity for one in baseline.levels} & {*judged}
        compared = f"{len(both)} quantities were compared with the medians of {len(baseline.names)} nodes."
    verdict, why = _answer(name, suspects, disturbed, compared)
    return AcceptanceDocument(
        site=f"node {name}{against}",
        verdict=verdict,
        why=why,
        nodes=1,
        suspects=suspects,
        exit_code=SUSPECTS if suspects else NOISY if disturbed else 0,
        nodelist=name if suspects else "",
        drain=drain(suspects, 1).commands,
        disturbed=disturbed,
        levels=levels,
        notes=(f"n/a: {', '.join(missing)}",) if missing else (),
        names=(name,),
    )


def _check_baseline(name: str, baseline: AcceptanceDocument | None, source: str) -> None:
    """UsageError for a baseline without this node, or without values of nodes alone."""
    if baseline is None:
        return
    if name not in baseline.names:
        why, hint = (
            f"is of another site: {name} is not among its nodes",
            "give a document of a site with this node",
        )
    elif not {one.quantity for one in baseline.levels} & {*PARTS["alone"]}:
        why, hint = "has no value of a node alone", "give the site.json of a run of `elbowroom accept`"
    else:
        return
    raise UsageError(why, field="baseline", value=source, hint=hint)


def _answer(name: str, suspects: Sequence[Suspect], disturbed: float, compared: str) -> tuple[str, str]:
    """The verdict and the reason."""
    if suspects:
        one = suspects[0]
        verdict = f"{name} is a suspect: it loses {percent(one.loss)} of {one.quantity}."
        return verdict, f"Cause: {cause_text(one.cause)}; {one.evidence}."
    if disturbed:
        wait = percent(disturbed, digits=0)
        return (
            f"{name} cannot be judged: other programs use its cores.",
            f"Threads that compute wait for a core {wait} of the time. {compared}",
        )
    return f"{name} is no suspect.", compared


def _suspects(name: str, known: dict[str, Floats], baseline: AcceptanceDocument) -> Iterator[Suspect]:
    """At most one: the node, with the cause of all that it loses."""
    levels = {one.quantity: one for one in baseline.levels}
    shared = {quantity: values for quantity, values in known.items() if quantity in levels}
    beyond = {quantity: _beyond(quantity, values, levels[quantity]) for quantity, values in shared.items()}
    signs = {
        quantity: float(bdtrc(count - 1, shared[quantity].size, 0.5)) if count else 1.0
        for quantity, count in ((one, int((losses > 0).sum())) for one, losses in beyond.items())
    }
    chances = dict(zip(signs, holm(list(signs.values()), len(signs)), strict=True))
    slow = sorted((one for one in chances if chances[one] <= ALPHA), key=lambda one: chances[one])
    if not slow:
        return
    losses = {one: _share(one, shared[one], levels[one]) for one in shared}
    cause = name_cause(losses, slow, {})
    yield Suspect(
        node=0,
        name=name,
        quantity=cause.quantity,
        cause=cause.cause,
        score=score_of(min(chances.values())),
        loss=losses[cause.quantity],
        values=shared[cause.quantity].size,
        evidence=cause.evidence,
        also=tuple(one for one in slow if one != cause.quantity),
    )


def _beyond(quantity: str, values: Floats, level: SiteLevel) -> Floats:
    """What each value loses beyond what was seen of healthy nodes."""
    known = QUANTITIES[quantity]
    allowed = max(known.tolerance, level.visible or 0.0)
    usual = as_losses(known, np.array([level.median]))[0]
    losses: Floats = as_losses(known, values) - usual - as_loss(known, min(allowed, 0.99))
    return losses


def _share(quantity: str, values: Floats, level: SiteLevel) -> float:
    known = QUANTITIES[quantity]
    median, usual = as_losses(known, np.array([float(np.median(values)), level.median]))
    return as_share(known, float(median - usual))


def _levels(known: dict[str, Floats], baseline: AcceptanceDocument | None) -> Iterator[SiteLevel]:
    levels = {} if baseline is None else {one.quantity: one for one in baseline.levels}
    for quantity, values in known.items():
        one = QUANTITIES[quantity]
        before = levels.get(quantity)
        yield SiteLevel(
            quantity=quantity,
            unit=one.unit,
            median=float(np.median(values)),
            spread=float(np.subtract(*np.quantile(values, [0.75, 0.25])))
            / max(float(np.median(values)), 1e-9),
            visible=None if before is None else max(one.tolerance, before.visible or 0.0),
            rate=one.more_is_better,
        )
