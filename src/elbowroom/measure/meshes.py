"""A plan's mesh from a file: checked, written for the program once, and put into the points."""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec

from elbowroom.errors import UsageError
from elbowroom.launch.native import cache_folder
from elbowroom.machine.topology import Machine
from elbowroom.plan.file import Plan
from elbowroom.points.point import Expansion
from elbowroom.store.meshes import check_mesh, read_mesh, write_mesh


def with_mesh(expansion: Expansion, plan: Plan, machine: Machine) -> Expansion:
    """The points on the mesh that the plan names; unchanged without one. UsageError for a mesh that cannot be
    used, and on a simulated cluster, whose partitions are of boxes.
    """
    name = str(getattr(plan.keys, "mesh", ""))
    if not name:
        return expansion
    if machine.virtual:
        raise UsageError(
            "a simulated cluster has partitions of boxes only",
            field="mesh",
            value=name,
            hint="measure on a real machine, or leave the mesh out",
        )
    path, cells = written(Path(name), cavities=bool(plan.keys.cavities))
    return Expansion(
        points=tuple(
            msgspec.structs.replace(point, workload=point.workload.on_mesh(str(path), cells))
            for point in expansion.points
        ),
        notes=expansion.notes,
    )


def written(source: Path, *, cavities: bool = False) -> tuple[Path, int]:
    """The file that programs read, made once for each content, and its number of cells."""
    if not source.is_file():
        read_mesh(source)
    digest = hashlib.sha256(source.read_bytes()).hexdigest()[:16]
    mesh = read_mesh(source)
    target = cache_folder("meshes") / f"{digest}.mesh"
    neighbours = check_mesh(mesh, source, cavities=cavities)
    if not target.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        write_mesh(target, mesh, neighbours)
    return target, len(mesh.cells)
