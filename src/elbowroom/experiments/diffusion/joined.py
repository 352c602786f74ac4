"""Runs of the diffusion solver on different numbers of nodes as one: Table II, Figs 8 and 9 of Langguth et
al. (2018).
"""

from __future__ import annotations

from collections.abc import Sequence

from elbowroom.errors import UsageError
from elbowroom.experiments.diffusion import data, figures, findings, tables
from elbowroom.experiments.diffusion.rows import StepRow, rows
from elbowroom.experiments.experiment import JoinedResults, RunPart
from elbowroom.points import ApplicationSteps, running


def join(parts: Sequence[RunPart]) -> JoinedResults:
    """The rows of all runs, each with the loss ratios of its own run. UsageError where a run has no steps, a
    number of nodes is in two runs, or the meshes are not the same: strong scaling is of one mesh.
    """
    machine = parts[0].machine
    table: list[StepRow] = []
    whose: dict[tuple[int, int], str] = {}
    mesh: dict[tuple[int, str], str] = {}
    for part in parts:
        own = rows(part.results)
        if not own:
            raise UsageError(
                "has no step that was measured with all its parts",
                field="run",
                value=part.name,
                hint="leave it out, or measure it again with 5 repetitions",
            )
        _check_nodes(own, part.name, whose)
        for _, steps in running(part.results, ApplicationSteps):
            mesh.setdefault((steps.cells, steps.partitioner), part.name)
        _check_mesh(mesh, part.name)
        table += own
    table.sort(key=lambda row: (row.nodes, row.comm_threads))
    results = [item for part in parts for item in part.results]
    return JoinedResults(
        findings=tuple(findings.of_rows(table, results, machine)),
        figures=figures.of_rows(table),
        tables=tables.of_rows(table, machine),
        data=data.of_rows(table),
    )


def _check_nodes(own: Sequence[StepRow], name: str, whose: dict[tuple[int, int], str]) -> None:
    for row in own:
        other = whose.setdefault((row.nodes, row.comm_threads), name)
        if other != name:
            raise UsageError(
                f"has steps on {row.nodes} nodes, as {other} has",
                field="run",
                value=name,
                hint="join one run of each number of nodes",
            )


def _check_mesh(mesh: dict[tuple[int, str], str], name: str) -> None:
    if len(mesh) == 1:
        return
    (cells, partitioner), (others, cut) = list(mesh)[:2]
    first = mesh[cells, partitioner]
    what = f"{others} cells" if cells != others else f"a mesh cut by {cut}"
    than = f"{cells}" if cells != others else f"cut by {partitioner}"
    raise UsageError(
        f"has {what}, and {first} {than}: strong scaling is of one mesh",
        field="run",
        value=name,
        hint=f"measure it with --set cells={cells} --set partitioner={partitioner}",
    )
