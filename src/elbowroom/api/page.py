"""What a run says, composed for the report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from elbowroom.report.columns import Use
from elbowroom.report.page import Page, TextTable

if TYPE_CHECKING:
    from elbowroom.campaign.results import Results
    from elbowroom.plan.point import Note
    from elbowroom.report.jobs import Jobbed
    from elbowroom.report.modelled import Modelled


def page_of(
    results: Results,
    models: tuple[Modelled, ...] = (),
    doubts: tuple[Note, ...] = (),
    job: Jobbed | None = None,
) -> Page:
    """The report's page for the results of a run; `doubts`: why a model of the run is not shown."""
    manifest = results.manifest
    plan = manifest.plan
    share = manifest.measured_share
    return Page(
        title=f"{plan['name']}: {plan.get('question') or 'computation beside communication'}",
        manifest=msgspec.to_builtins(manifest),
        machine=results.machine,
        verdict=results.verdict,
        results=results.points,
        state=known_state(manifest.state.get("before", {})),
        observers=manifest.observers,
        findings=results.findings,
        figures=results.figures(),
        notes=(*results.notes, *doubts),
        models=models,
        job=job,
        uses={
            point.id: Use(
                comp_cores=point.comp_cores,
                comm_cores=point.comm_cores or (point.comm_core,),
                peer_cores=point.peer_cores if results.machine.hosts < 2 else (),
            )
            for point in manifest.points
        },
        drifts=results.drifts,
        tables=_tables(results),
        method=(
            ("repetitions", str(plan["repetitions"])),
            (
                "order",
                f"random inside each repetition, seed {manifest.seed}" + ", reversed" * manifest.reverse,
            ),
            ("time inside measured windows", _share(share, manifest.machine.virtual)),
        ),
    )


def _tables(results: Results) -> tuple[TextTable, ...]:
    """What extraneous accesses did between caches, in place of hundreds of windows."""
    from elbowroom.experiments.ema_table import COLUMNS, MEANING, tables

    told = tables(results.points, results.machine)
    return tuple(
        TextTable(
            title=table.title,
            columns=COLUMNS,
            rows=table.rows,
            below=tuple(sentence for sentence in (table.below, MEANING) if sentence),
        )
        for table in told
    )


def _share(share: float | None, virtual: bool) -> str:
    if virtual:
        return "none: virtual"
    return "unknown" if share is None else f"{share:.0%}"


def known_state(state: Mapping[str, Any]) -> dict[str, Any]:
    """A machine's state without what is unknown; that is listed apart, with the reasons."""
    found: dict[str, Any] = {}
    for name, value in state.items():
        if not isinstance(value, Mapping):
            found[name] = value
        elif set(value) != {"unknown"} and (inner := known_state(value)):
            found[name] = inner
    return found
