"""Whether the machine was quiet enough to believe a run (METHOD.md, rule 15), and what the run says."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import msgspec

from elbowroom.stats.result import Finding, PointResult, Verdict

QUIET_KEPT = 0.97  # what the register-only kernel must keep beside the communication
WIDE = 0.06  # an interval wider than this around less than QUIET_KEPT does not show quietness
REPEATABLE = 0.10  # (d9 - d1) / median of the register-only kernel alone
STEAL = 0.02  # share of CPU time taken by the hypervisor
OTHERS = 0.25  # cores kept busy by other processes
FEWEST = 8  # samples per phase: four repetitions of two; with fewer the bootstrap interval is too narrow
UNSURE = 0.25  # share of points not stable, failed or drifting


class Observations(msgspec.Struct, frozen=True, kw_only=True):
    """What was seen of the rest of the machine; None is unknown and is never held against the run.

    `others_*`: cores kept busy by other processes before, while and after measuring; `steal_share`: CPU time
    the hypervisor took, as a share of the measured time of all cores.
    """

    others_before: float | None = None
    others_during: float | None = None
    others_after: float | None = None
    steal_share: float | None = None


def controls(results: Sequence[PointResult]) -> list[PointResult]:
    """Points with the register-only kernel beside the largest message at the largest n."""
    marked = [result for result in results if result.role == "control"]
    primes = [result for result in results if result.kernel == "prime"]
    if not primes:
        return marked
    most = max(result.n for result in results)
    largest = max(result.size for result in results)
    return [
        result
        for result in primes
        if result.role == "control" or (result.n == most and result.size == largest)
    ]


def judge(
    results: Sequence[PointResult], observations: Observations | None = None
) -> tuple[bool, tuple[str, ...]]:
    """(trusted, reasons): every reason is one plain sentence; no reason means trusted."""
    reasons = [
        *_control_reasons(results),
        *_load_reasons(observations or Observations()),
        *_sample_reasons(results),
    ]
    return not reasons, tuple(reasons)


def _control_reasons(results: Sequence[PointResult]) -> list[str]:
    found = [result for result in controls(results) if result.comp.kept is not None]
    reasons = _window_reasons(results)
    if not found:
        unknown = "No register-only control kernel was measured, so nothing shows that the machine was quiet."
        return [*reasons, unknown]
    for result in found:
        kept, alone = result.comp.kept, result.comp.alone
        if kept is None or alone is None:
            continue
        said = f"kept {kept.value:.2f} ({kept.low:.2f} to {kept.high:.2f})"
        if kept.high < QUIET_KEPT:
            reasons.append(
                f"Prime counting, which uses no memory, {said} beside the communication; a "
                "quiet machine keeps "
                f"{QUIET_KEPT} or more."
            )
        elif kept.value < QUIET_KEPT and kept.high - kept.low > WIDE:
            reasons.append(
                f"Prime counting {said} beside the communication: too uncertain to call the machine quiet."
            )
        spread = (alone.d9 - alone.d1) / alone.median if alone.median else 0.0
        if spread > REPEATABLE:
            reasons.append(
                f"Prime counting alone varied by {spread:.0%} between its first and last "
                "decile; a quiet machine stays "
                f"within {REPEATABLE:.0%}."
            )
    return list(dict.fromkeys(reasons))


def _window_reasons(results: Sequence[PointResult]) -> list[str]:
    """Of runs of extraneous accesses, whose windows all have messages without any: those of one kind of
    messages should take the same in every window.
    """
    kinds: dict[tuple[object, ...], list[float]] = {}
    for result in results:
        if result.series is not None and result.extraneous is not None:
            kind = (result.size, result.extraneous.data, result.extraneous.barrier)
            kinds.setdefault(kind, []).append(statistics.median(result.series.without.median))
    relative = sorted(one / statistics.median(several) for several in kinds.values() for one in several)
    tenth = len(relative) // 10
    spread = relative[-1 - tenth] - relative[tenth] if relative else 0.0
    if spread <= REPEATABLE:
        return []
    return [
        f"The one-way time without accesses varied by {spread:.0%} between the first and the last decile of "
        f"the windows; a quiet machine stays within {REPEATABLE:.0%}."
    ]


def _load_reasons(observations: Observations) -> list[str]:
    reasons = []
    for when, busy in (
        ("before", observations.others_before),
        ("during", observations.others_during),
        ("after", observations.others_after),
    ):
        if busy is not None and busy > OTHERS:
            reasons.append(f"Other processes kept {busy:.1f} cores busy {when} the run.")
    if observations.steal_share is not None and observations.steal_share > STEAL:
        reasons.append(f"The hypervisor took {observations.steal_share:.1%} of the CPU time (steal).")
    return reasons


def _sample_reasons(results: Sequence[PointResult]) -> list[str]:
    if not results:
        return ["No point was measured."]
    reasons = []
    counts = [
        summary.count
        for result in results
        for side in (result.comp, result.comm)
        for summary in (side.alone, side.together)
        if summary is not None
    ]
    if counts and min(counts) < FEWEST:
        reasons.append(
            f"Some values rest on {min(counts)} samples; an interval needs {FEWEST} (repeat more often)."
        )
    for what, number in (
        ("found no steady state", sum(result.status == "not_stable" for result in results)),
        ("failed", sum(result.status == "failed" for result in results)),
        ("drifted between the run and its end", sum(_drifted(result) for result in results)),
    ):
        if number > max(1, UNSURE * len(results)):
            reasons.append(f"{number} of {len(results)} points {what}.")
    return reasons


def _drifted(result: PointResult) -> bool:
    return any(flag.startswith("drift") for flag in result.flags)


def imported(findings: Sequence[Finding]) -> Verdict:
    """What imported values say: whether their machine was quiet is unknown, which is no trust."""
    said, interference = _said(findings)
    reason = (
        "The values were imported: one for each bandwidth, without repetitions, a control, or the state of "
        "the machine."
    )
    return Verdict(
        trusted=False,
        text=f"Imported values; whether the machine was quiet is unknown. What they show: {said}",
        reasons=(reason,),
        interference=interference,
        findings=tuple(findings),
    )


def verdict(
    findings: Sequence[Finding], results: Sequence[PointResult], observations: Observations | None = None
) -> Verdict:
    """The first finding's text is what the run says; what makes it doubtful comes before it.

    `interference`: True where a finding shows it, False where findings show quiet, None where nothing can be
    said.
    """
    trusted, reasons = judge(results, observations)
    said, interference = _said(findings)
    text = (
        said
        if trusted
        else f"The machine was not quiet enough to trust this run. {reasons[0]} What was seen: {said}"
    )
    return Verdict(
        trusted=trusted, text=text, reasons=reasons, interference=interference, findings=tuple(findings)
    )


def _said(findings: Sequence[Finding]) -> tuple[str, bool | None]:
    """The sentence of the first finding that says something, and whether any shows interference."""
    levels = {finding.level for finding in findings}
    interference = True if "interference" in levels else (False if "quiet" in levels else None)
    said = next((finding.text for finding in findings if finding.level in ("interference", "quiet")), "")
    return said or "Nothing can be said about interference from these points.", interference
