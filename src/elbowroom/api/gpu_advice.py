"""Advice for jobs of accelerators."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from elbowroom.advise.gpu_advisor import advise_gpu as advised
from elbowroom.advise.gpu_advisor import nccl_tuner
from elbowroom.advise.gpu_job import GpuAdvice as GpuAdvice
from elbowroom.advise.gpu_job import GpuAnswer as GpuAnswer
from elbowroom.advise.gpu_job import GpuConfiguration as GpuConfiguration
from elbowroom.advise.gpu_job import GpuJob as GpuJob
from elbowroom.advise.gpu_job import decode, is_gpu_job
from elbowroom.documents import encode, parse_toml
from elbowroom.files import read_text, write_atomically
from elbowroom.verbs.model_file import load_model

if TYPE_CHECKING:
    from elbowroom.verbs.model_file import Model

TUNER = (".conf", ".csv")


def load_gpu_job(path: Path | str) -> GpuJob | None:
    """The job of an accelerator in a file; None where the file holds another job.

    UsageError tells field, value and hint of what is wrong.
    """
    where = Path(path)
    text = read_text(where, field="job", hint="name a TOML file, see `elbowroom help advise`")
    if not is_gpu_job(parse_toml(text, field="job", where=where.name)):
        return None
    return decode(text, where.name)


def advise_gpu(model: Model | Path | str, job: GpuJob) -> GpuAdvice:
    """How a step should run on the accelerator of a model (M.json): who moves the bytes, with how many SMs,
    from where, beside how many cores.

    UsageError where the model has no accelerator, or cannot answer any setup of the job.
    """
    loaded = load_model(model)
    source = str(loaded.path) if loaded.path is not None else loaded.machine.name
    return advised(loaded.document, job, model=source)


def save_gpu_advice(advice: GpuAdvice, path: Path | str) -> Path:
    """Writes the advice as JSON, or for NCCL's tuner (.conf, .csv), whole or not at all."""
    target = Path(path)
    tuner = target.suffix.lower() in TUNER
    write_atomically(target, nccl_tuner(advice).encode() if tuner else encode(advice))
    return target
