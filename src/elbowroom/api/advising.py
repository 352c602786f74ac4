"""Advice for a job, as Python sees it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elbowroom.api.measuring import chatter
from elbowroom.api.runs import Run
from elbowroom.errors import UsageError

if TYPE_CHECKING:
    from elbowroom.advise.advice import Advice
    from elbowroom.advise.checking import Compared
    from elbowroom.advise.job import Job
    from elbowroom.api.predicting import Model
    from elbowroom.model.document import ModelName


def load_job(source: Job | Mapping[str, Any] | Path | str) -> Job:
    """A job from its file (docs/advise.md), or from plain data as that file would give it.

    UsageError tells field, value and mend of what is wrong.
    """
    from elbowroom.advise.job import Job, decode, of_data

    if isinstance(source, Job):
        return source
    if isinstance(source, Mapping):
        return of_data(source)
    path = Path(source)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no text"
        raise UsageError(
            f"cannot be read ({reason})",
            field="job",
            value=str(path),
            mend="name a TOML file, see docs/advise.md",
        ) from error
    return decode(text, path.name)


def advise(
    model: Model | Path | str, job: Job | Mapping[str, Any] | Path | str, *, name: ModelName | None = None
) -> Advice:
    """How a job should run on the machine of a model (M.json, or a published machine): the best setup of all
    that it may choose, what each change gains with its 90 % interval, and why.

    See `sentence`, `now`, `advised`, `choices`, `configurations` of what is returned. UsageError where the
    job does not fit the machine, leaves nothing to choose, or asks what the model has no runs for.
    """
    from elbowroom.advise.advising import advise as advised
    from elbowroom.api.predicting import load_model

    found = load_model(model)
    source = str(found.path) if found.path is not None else found.machine.name
    return advised(found.document, load_job(job), model=source, name=name)


def save_advice(advice: Advice, path: Path | str) -> Path:
    """Writes the advice as JSON (schemas/advice-1.json), whole or not at all."""
    import msgspec

    from elbowroom.store.files import write_atomically

    target = Path(path)
    if target.is_dir():
        raise UsageError("is a folder", field="out", value=str(target), mend="name a file")
    write_atomically(target, msgspec.json.format(msgspec.json.encode(advice), indent=1) + b"\n")
    return target


def load_advice(path: Path | str) -> Advice:
    """Advice from its file; UsageError where it is none, is damaged, or was written by a newer release."""
    import msgspec

    from elbowroom.advise.advice import SCHEMA, VERSION, Advice
    from elbowroom.store.versions import check_version

    source, mend = str(path), "write it again: elbowroom advise M.json --job JOB.toml -o FILE"
    try:
        head = msgspec.json.decode(Path(path).read_bytes())
    except (OSError, msgspec.DecodeError) as error:
        raise UsageError(f"cannot be read ({error})", field="advice", value=source, mend=mend) from error
    if not isinstance(head, dict) or head.get("schema") != SCHEMA:
        raise UsageError(f"is no advice (schema {SCHEMA!r})", field="advice", value=source, mend=mend)
    check_version(Path(path), SCHEMA, head.get("version"), VERSION, head.get("elbowroom"))
    try:
        return msgspec.convert(head, Advice)
    except msgspec.ValidationError as error:
        raise UsageError(f"is damaged ({error})", field="advice", value=source, mend=mend) from error


def verify_advice(
    advice: Advice,
    model: Model | Path | str,
    *,
    repetitions: int = 9,
    run: Path | str | None = None,
    resume: Path | str | None = None,
    machine: str | None = None,
    noise: float | None = None,
    seed: int | None = None,
    launcher: str | None = None,
    mpi: str | None = None,
    hosts: Sequence[str] = (),
    hostfile: str | None = None,
    patience: float | None = None,
    command: Sequence[str] = (),
    tell: Callable[[str], object] = chatter,
) -> Compared:
    """Measures the present and the advised configuration, interleaved, in a new folder `run` (or goes on with
    `resume`), and says what was gained beside what was predicted; where nothing is advised, the best other
    prediction takes the advised one's place.

    The probe measures both sides' bandwidths, of which the steps follow, or the job's own command is timed.
    `model`: that of the advice. `machine`: a virtual one answers, as of `elbowroom.run`.
    """
    from elbowroom.api.predicting import load_model
    from elbowroom.campaign import timing, verifying
    from elbowroom.campaign.running import Request, default_out
    from elbowroom.campaign.sources import Where, choose

    if resume is not None and run is not None:
        raise UsageError("cannot be given with resume", field="run", value=str(run), mend="leave one out")
    document = load_model(model).document
    if advice.job.verify.command is not None:
        if machine is not None:
            raise UsageError(
                "cannot run a program",
                field="machine",
                value=machine,
                mend="leave verify.command out of the job",
            )
        out = Path(resume or run or default_out(verifying.NAME))
        return timing.time_program(
            advice,
            document,
            out,
            repetitions=repetitions,
            seed=seed or 1,
            patience=patience,
            tell=tell,
            again=resume is not None,
        )
    if resume is not None:
        folder, results, compared = verifying.verify_again(advice, document, Path(resume), tell)
    else:
        where = Where(
            launcher=launcher,
            mpi=mpi,
            hosts=tuple(hosts),
            hostfile=hostfile,
            machine=machine,
            noise=noise,
            seed=seed if machine is not None else None,
        )
        request = Request(
            plan=verifying.NAME,
            where=where,
            out=None if run is None else str(run),
            seed=seed,
            patience=patience,
            command=tuple(command),
        )
        folder, results, compared = verifying.verify(
            advice, document, request, choose(where), repetitions, tell
        )
    Run(folder, results).report()
    return compared
