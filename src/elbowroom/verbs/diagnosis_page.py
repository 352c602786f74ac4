"""The page of a diagnosis, from its document and the account behind it."""

from __future__ import annotations

import shlex
from pathlib import Path

from elbowroom.diagnose.account import PARTS, Account
from elbowroom.diagnose.timeline import median_step
from elbowroom.files import write_atomically
from elbowroom.profile.profile import Profile
from elbowroom.report.diagnosis_page import DiagnosisPage, RankBar, render_diagnosis
from elbowroom.verbs.diagnosis_document import Diagnosis
from elbowroom.verbs.diagnosis_text import diagnosis_answer, steps_sentence


def write_page(path: Path, diagnosis: Diagnosis, profile: Profile, account: Account) -> None:
    """Writes the page, whole or not at all."""
    page = page_of(diagnosis, profile, account)
    write_atomically(path, render_diagnosis(page).encode())


def page_of(diagnosis: Diagnosis, profile: Profile, account: Account) -> DiagnosisPage:
    """What the page shows."""
    answer = diagnosis_answer(diagnosis)
    manifest = profile.manifest
    hosts = {rank.rank: rank.host for rank in profile.ranks}
    return DiagnosisPage(
        command=shlex.join(manifest.command) if manifest and manifest.command else diagnosis.profile,
        verdict=answer.verdict,
        why=answer.why,
        following=answer.next,
        fault=diagnosis.first_cause != "computation",
        steps=steps_sentence(diagnosis),
        notes=diagnosis.notes,
        bars=tuple(
            RankBar(
                rank=rank,
                host=hosts[rank],
                shares={part: float(own[at]) / max(account.step_s, 1e-12) for at, part in enumerate(PARTS)},
            )
            for rank, own in zip(account.ranks, account.of_ranks(), strict=True)
        ),
        parts=diagnosis.parts,
        pop=diagnosis.pop,
        causes=diagnosis.causes,
        tried=diagnosis.tried,
        timeline=None if diagnosis.steps.recognised_by == "run" else median_step(profile, account),
    )
