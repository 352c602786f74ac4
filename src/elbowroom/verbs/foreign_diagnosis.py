"""`diagnose --from FILE`: the diagnosis of a profile that another tool wrote."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from elbowroom.cli.answer import Answer
from elbowroom.cli.console import print_all, print_list, print_wrapped
from elbowroom.cli.tables import new_table, print_table
from elbowroom.diagnose.account import PARTS
from elbowroom.diagnose.causes import Cause
from elbowroom.diagnose.foreign import read_foreign
from elbowroom.diagnose.foreign.account import foreign_account, foreign_causes, foreign_pop
from elbowroom.diagnose.summary import LABELS
from elbowroom.files import write_atomically
from elbowroom.quantities import format_size, percent, plural, short_time

if TYPE_CHECKING:
    from elbowroom.diagnose.foreign.profile import CallTime

MOST_CALLS = 10
"""Call sites that are printed."""
DOCUMENT = "diagnosis.json"
MEASURE = "elbowroom diagnose -- mpirun -n 4 ./app"


class ForeignSteps(msgspec.Struct, frozen=True, kw_only=True):
    """The whole run as one step; fields as in StepFacts, None: not in the file."""

    recognised_by: Literal["run"] = "run"
    count: int = 1
    iterations_per_step: int | None = None
    node: str | None = None
    ranks: int | None
    inside: bool | None = None
    duration_s: float
    computation_s: float | None
    network_s: float | None = None
    waiting_s: float | None = None
    bytes_sent: float | None
    bytes_received: float | None = None
    message_bytes: int | None = None


class ForeignShares(msgspec.Struct, frozen=True, kw_only=True):
    """Shares of the run, which sum to 1; None: the file does not tell it, and it is in `not_explained`."""

    compute: float | None
    transfer: float | None
    contention: float | None
    late_ranks: float | None
    no_progress: float | None
    collective_wait: float | None
    library: float | None
    scheduler: float | None
    io: float | None
    not_explained: float


class ForeignPop(msgspec.Struct, frozen=True, kw_only=True):
    """The POP factors; None: not in the file. `communication_efficiency` = serialisation x transfer."""

    parallel_efficiency: float | None
    load_balance: float | None
    serialisation: float | None
    transfer: float | None
    communication_efficiency: float | None


class ForeignCalls(msgspec.Struct, frozen=True, kw_only=True):
    """An MPI function, called from one place: seconds of all ranks together; None: not in the file."""

    call: str
    seconds: float
    calls: int | None
    bytes_sent: float | None
    function: str | None
    file: str | None
    line: int | None


class ForeignDiagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """What `diagnose --from FILE --json` prints: the document of `diagnose`, in which what the file does not
    tell is null. `profile`: the file; `format`: of which tool; `region`: of the program, "" for all of it;
    `causes`: those that the file has evidence for, maybe none; `sites`: calls, the longest first; `notes`:
    what is missing.
    """

    schema: str = "elbowroom/diagnosis"
    version: int = 2
    profile: str
    format: str
    region: str = ""
    exit_code: int | None = None
    steps: ForeignSteps
    step_s: float
    account: ForeignShares
    parts: tuple[()] = ()
    pop: ForeignPop
    causes: tuple[Cause, ...]
    tried: tuple[()] = ()
    sites: tuple[ForeignCalls, ...]
    job: None = None
    job_file: None = None
    unknown: tuple[str, ...] = ()
    model: None = None
    model_origin: None = None
    advice: None = None
    core_bound: None = None
    step_error: None = None
    hidden_most: float | None = None
    missing: str = ""
    verified: None = None
    trusted: bool = True
    notes: tuple[str, ...] = ()


def diagnose_from(source: str, out: Path | str | None = None) -> ForeignDiagnosis:
    """The diagnosis of a file of another tool; `out`: a folder for the document. UsageError for a file
    that is damaged or of no known format.
    """
    profile = read_foreign(Path(source))
    shares = foreign_account(profile, PARTS)
    pop = foreign_pop(profile)
    sent = [call.sent for call in profile.calls if call.sent is not None]
    ranks = profile.ranks or 1
    diagnosis = ForeignDiagnosis(
        profile=source,
        format=profile.format,
        region=profile.region,
        steps=ForeignSteps(
            ranks=profile.ranks,
            duration_s=profile.seconds,
            computation_s=None if profile.useful is None else profile.useful * profile.seconds,
            bytes_sent=sum(sent) / ranks if sent else None,
        ),
        step_s=profile.seconds,
        account=msgspec.convert(shares, ForeignShares),
        pop=ForeignPop(
            parallel_efficiency=pop.parallel_efficiency,
            load_balance=pop.load_balance,
            serialisation=pop.serialisation,
            transfer=pop.transfer,
            communication_efficiency=pop.communication,
        ),
        causes=foreign_causes(profile, shares),
        sites=tuple(map(_calls, profile.calls)),
        unknown=tuple(part for part, share in shares.items() if share is None),
        missing=f"A file of {profile.format} does not say how the job could run: {MEASURE}",
        notes=tuple(f"{note[0].upper()}{note[1:]}." for note in profile.notes),
    )
    if out is not None:
        path = Path(out, DOCUMENT)
        write_atomically(path, msgspec.json.format(msgspec.json.encode(diagnosis), indent=1) + b"\n")
    return diagnosis


def _calls(call: CallTime) -> ForeignCalls:
    return ForeignCalls(
        call=call.function,
        seconds=call.seconds,
        calls=call.calls,
        bytes_sent=call.sent,
        function=call.caller or None,
        file=call.file or None,
        line=call.line,
    )


def print_foreign(diagnosis: ForeignDiagnosis, names: dict[str, str]) -> None:
    """All but the answer; `names`: of parts, for people."""
    steps = diagnosis.steps
    ranks = "" if steps.ranks is None else f" of {plural(steps.ranks, 'rank')}"
    region = f", region {diagnosis.region}" if diagnosis.region else ""
    print_wrapped(f"{diagnosis.format}: a run{ranks}{region}, {short_time(diagnosis.step_s)}", style="bold")
    print_all(diagnosis.notes, style="yellow")
    print()
    table = new_table("the run", ">share", ">time")
    for part in PARTS:
        share = getattr(diagnosis.account, part)
        if share is not None:
            table.add_row(names[part], percent(share), short_time(share * diagnosis.step_s))
    print_table(table)
    print_wrapped(f"Not in the file: {', '.join(names[part] for part in diagnosis.unknown)}")
    pop = diagnosis.pop
    if pop.parallel_efficiency is not None and pop.load_balance is not None:
        factors = f"load balance {pop.load_balance:.2f}"
        if pop.communication_efficiency is not None:
            factors += f", communication efficiency {pop.communication_efficiency:.2f}"
        print_wrapped(f"POP: parallel efficiency {pop.parallel_efficiency:.2f}; {factors}")
    if diagnosis.sites:
        print()
        print_list(map(_site, diagnosis.sites[:MOST_CALLS]))


def _site(site: ForeignCalls) -> str:
    where = f" in {site.function}" if site.function else ""
    line = f" ({site.file}:{site.line})" if site.line else ""
    sent = "" if site.bytes_sent is None else f", {format_size(round(site.bytes_sent))} sent"
    return f"{site.call}{where}{line}: {short_time(site.seconds)} of all ranks{sent}"


def foreign_answer(diagnosis: ForeignDiagnosis) -> Answer:
    """The cause that the file has evidence for; else what it cannot say, and what can."""
    if diagnosis.causes:
        cause = diagnosis.causes[0]
        style = "green" if cause.cause == "computation" else "yellow"
        return Answer(cause.sentence, cause.evidence, MEASURE, style)
    left = percent(diagnosis.account.not_explained)
    return Answer(
        f"Cannot say why: {left} of the run are not explained by this file.",
        "It has no times of messages and waits, which elbowroom's own profile has.",
        MEASURE,
        "yellow",
    )


def run_from(
    source: str, out: str | None, as_json: bool, print_document: Callable[[Any], object]
) -> ForeignDiagnosis:
    """Diagnoses a file, and prints the document or the text without the answer."""
    diagnosis = diagnose_from(source, out)
    if as_json:
        print_document(diagnosis)
    else:
        print_foreign(diagnosis, LABELS)
    return diagnosis
