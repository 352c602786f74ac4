"""What a diagnosis prints: the steps, the account, the causes, what was tried, the advice and the answer."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from elbowroom.cli.answer import Answer, command_line
from elbowroom.cli.console import print_all, print_list, print_wrapped
from elbowroom.cli.tables import new_table, print_table
from elbowroom.diagnose.summary import LABELS
from elbowroom.quantities import format_size, percent, plural, short_time, span, with_span
from elbowroom.verbs.advise_tables import compared_answer, print_advice, print_compared
from elbowroom.verbs.colocate_demand import demand_sentence, print_demand

if TYPE_CHECKING:
    from elbowroom.diagnose.causes import Cause
    from elbowroom.verbs.diagnosis_document import CoreBound, Diagnosis

LEAST = 0.005
"""A smaller part of the account has no row."""
NOT_JUDGED = "The account says where the time went; a cause needs a longer run or a quiet machine."
INSENSITIVE = 1.05
"""A program that loses less beside the largest load is bound by its cores."""
MUCH = 0.1
"""Where messages take a larger share of a step, communication is not what the program is free of."""
ORIGINS = {
    "given": "given",
    "earlier": "the newest in runs/ that suits",
    "measured": "measured now",
}


def print_diagnosis(diagnosis: Diagnosis) -> None:
    """All but the answer."""
    print_wrapped(steps_sentence(diagnosis), style="bold")
    print_all(diagnosis.notes, style="yellow")
    print()
    _print_account(diagnosis)
    if len(diagnosis.causes) > 1:
        print()
        print_list(f"{cause.sentence} {cause.evidence}" for cause in diagnosis.causes[1:])
    if diagnosis.tried:
        print()
        _print_tried(diagnosis)
    if diagnosis.demand is not None:
        print()
        print_demand(diagnosis.demand)
        print_wrapped(demand_sentence(diagnosis.demand))
    print()
    _print_files(diagnosis)
    if diagnosis.missing:
        print_wrapped(diagnosis.missing)
    if diagnosis.advice is None or diagnosis.core_bound is None:
        return
    print_wrapped("Not known from the profile:")
    print_list(diagnosis.unknown, indent="  ")
    print()
    print_advice(diagnosis.advice)
    print()
    print_wrapped(f"By the model: {diagnosis.advice.sentence}")
    print_wrapped(_other_bound(diagnosis, diagnosis.core_bound), style="bold")
    if diagnosis.verified is not None:
        print_compared(diagnosis.verified)


def _print_account(diagnosis: Diagnosis) -> None:
    """A row for each part, and the POP factors."""
    table = new_table("a step", ">share", "90 %", ">time", ">most", "~where")
    for row in diagnosis.parts:
        if row.share >= LEAST:
            table.add_row(
                LABELS[row.part],
                percent(row.share),
                f"{percent(row.low)} to {percent(row.high)}",
                short_time(row.seconds),
                f"rank {row.rank}",
                row.site,
            )
    print_table(table)
    pop = diagnosis.pop
    print_wrapped(
        f"POP: parallel efficiency {pop.parallel_efficiency:.2f} = load balance {pop.load_balance:.2f} x "
        f"serialisation {pop.serialisation:.2f} x transfer {pop.transfer:.2f}"
    )


def _print_tried(diagnosis: Diagnosis) -> None:
    table = new_table("~tried", ">gain", "interval", "")
    for line in diagnosis.tried:
        gain = line.gain
        ends = (percent(end, sign=True) for end in gain.ends(gain.value))
        table.add_row(line.command, percent(gain.value, sign=True), span(*ends), line.decided)
    print_table(table)


def _print_files(diagnosis: Diagnosis) -> None:
    print_wrapped(f"profile: {diagnosis.profile}")
    if diagnosis.page is not None:
        print_wrapped(f"page: {diagnosis.page}")
    if diagnosis.job_file is not None:
        print_wrapped(f"job: {diagnosis.job_file}")
    if diagnosis.model_origin is not None:
        print_wrapped(f"model: {diagnosis.model} ({ORIGINS[diagnosis.model_origin]})")


def diagnosis_answer(diagnosis: Diagnosis) -> Answer:
    """The line that gains, else the first cause, each with its evidence; or what was measured of the
    advice.
    """
    if diagnosis.verified is not None:
        return compared_answer(diagnosis.verified)
    following = next_command(diagnosis)
    best = next((line for line in diagnosis.tried if line.decided == "gains"), None)
    cause = next(iter(diagnosis.causes), None)
    why = "" if cause is None else cause.evidence
    if best is not None:
        why = diagnosis.not_judged if cause is None else f"{cause.sentence} {cause.evidence}"
        gain = with_span(percent(best.gain.value), *map(percent, best.gain.ends(best.gain.value)))
        verdict = f"Another launch line saves {gain}: {best.what}."
        return Answer(verdict, why, best.command, "green")
    if cause is None:
        return Answer(diagnosis.not_judged, NOT_JUDGED, following, "yellow")
    if cause.cause == "computation":
        return Answer(cause.sentence, why, following, "green")
    if diagnosis.tried:
        why += " No launch line that was tried gains."
    return Answer(cause.sentence, f"{why} {_remedy(cause)}".strip(), following, "yellow")


def _remedy(cause: Cause) -> str:
    return f"What may help: {cause.tries}." if cause.tries else ""


def next_command(diagnosis: Diagnosis) -> str:
    """What leads on: the measurement of the advice, else the profile's page."""
    advice, job = diagnosis.advice, diagnosis.job_file
    if advice is not None and job is not None and advice.significant:
        virtual = ("--machine", advice.machine.name) if advice.machine.virtual else ()
        return command_line("advise", str(diagnosis.model), "--job", job, "--verify", *virtual)
    page = f"{os.path.normpath(diagnosis.profile)}.html"
    return command_line("profile", "show", diagnosis.profile, "-o", Path(page))


def _other_bound(diagnosis: Diagnosis, bound: CoreBound) -> str:
    """What gains if the cores bound the computation; the advice takes it to be bound by memory."""
    if not bound.changes:
        return "If the cores bound the computation, and not memory: nothing gains."
    changes = ", ".join(
        f"{axis} {str(value).lower() if isinstance(value, bool) else value}"
        for axis, value in bound.changes.items()
    )
    more = "" if diagnosis.verified else f" {_which_bound(diagnosis)}"
    return (
        f"If the cores bound the computation, and not memory: {changes} takes "
        f"{short_time(bound.total_s)} per step, {percent(bound.gain)} less.{more}"
    )


def _which_bound(diagnosis: Diagnosis) -> str:
    """Which of both bounds holds, by the demand; else that it is not known."""
    demand = diagnosis.demand
    if demand is None or not demand.trusted:
        return "A profile does not tell which bound holds: measure it with --verify."
    most = max((curve.slower[-1] for curve in demand.sensitivity), key=lambda one: one.value)
    bound = "its cores do" if most.value < INSENSITIVE else "memory does, at least in part"
    return f"By its demand, {bound}: beside the largest load it takes {most.value:.2f} times as long."


def steps_sentence(diagnosis: Diagnosis) -> str:
    """How many steps were found, and what one of them does."""
    steps = diagnosis.steps
    ranks = plural(steps.ranks, "rank")
    if steps.recognised_by == "run":
        return f"The whole run of {ranks} on {steps.node}: {short_time(steps.duration_s)}."
    how = "marks" if steps.recognised_by == "marks" else "a pattern of calls"
    several = (steps.iterations_per_step or 1) > 1
    iterations = f", {steps.iterations_per_step} iterations of the program," if several else ""
    received = format_size(round(steps.bytes_received or steps.bytes_sent))
    verb = "exchange" if steps.inside else "receive" if steps.bytes_received else "send"
    return (
        f"{steps.count} steps by {how} of {ranks} on {steps.node}: one{iterations} takes "
        f"{short_time(steps.duration_s)}; they compute {short_time(steps.computation_s)}, and {verb} "
        f"{received}."
    )
