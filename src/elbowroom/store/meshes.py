"""Meshes of tetrahedra from files: Gmsh 4.1 and legacy VTK in ASCII; other formats where meshio is installed.

A mesh is checked before anything is computed on it: cells that are inverted, flat or repeated, faces of more
than two cells, parts that hang together by nothing, and holes are refused in one sentence each.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from elbowroom.errors import UsageError
from elbowroom.files import read_text, write_with, wrong_kind

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MAGIC = b"ELBMESH1"
FACES = np.array([[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2]])
"""Corners of the faces of a tetrahedron, each opposite to the corner of its place."""
WALL = -1
TETRAHEDRON = {"gmsh": 4, "vtk": 10}
FLAT = {"gmsh": {15, 1, 2, 3, 8, 9, 16}, "vtk": {1, 2, 3, 4, 5, 6, 7, 8, 9, 21, 22, 23}}
"""Types of points, lines and surfaces, which are left out."""
THIN = 1e-12
"""Volume over the cube of the longest edge below which a cell is flat."""


class TetraMesh:
    """Points (n, 3) and cells (m, 4), numbers of points from 0."""

    def __init__(self, points: Floats, cells: Ints) -> None:
        self.points, self.cells = points, cells


def read_mesh(path: Path) -> TetraMesh:
    """The tetrahedra of a file; UsageError for a file that is none, and for other cells that fill space."""
    hint = "write it by Gmsh as MSH 4.1 or VTK, in ASCII"
    if what := wrong_kind(path, "file"):
        raise UsageError(what, field="mesh", value=str(path), hint=hint)
    with path.open("rb") as file:
        start = file.read(4096)
    if start.startswith(b"$MeshFormat") and _gmsh_is_text(start):
        return _read(path, _gmsh, hint)
    if start.startswith(b"# vtk DataFile") and b"\nASCII" in start.replace(b"\r", b""):
        return _read(path, _vtk, hint)
    return _by_meshio(path, hint)


def _gmsh_is_text(start: bytes) -> bool:
    words = start.split()
    return len(words) > 2 and words[1] == b"4.1" and words[2] == b"0"


def _read(path: Path, parse: Callable[[str], TetraMesh], hint: str) -> TetraMesh:
    text = read_text(path, field="mesh", hint=hint)
    try:
        mesh = parse(text)
    except (ValueError, IndexError, KeyError) as error:
        raise UsageError(
            f"cannot be read as a mesh ({error})", field="mesh", value=str(path), hint=hint
        ) from error
    return _sound(mesh, path)


def _sound(mesh: TetraMesh, path: Path) -> TetraMesh:
    if not len(mesh.cells):
        raise UsageError("has no tetrahedron", field="mesh", value=str(path), hint="mesh the volume too")
    if mesh.cells.min() < 0 or mesh.cells.max() >= len(mesh.points) or not np.isfinite(mesh.points).all():
        raise UsageError(
            "has cells with unknown points", field="mesh", value=str(path), hint="write it again"
        )
    return mesh


def _section(lines: list[str], name: str) -> list[str]:
    return lines[lines.index(f"${name}") + 1 : lines.index(f"$End{name}")]


def _gmsh(text: str) -> TetraMesh:
    """MSH 4.1: blocks of nodes (their tags, then their coordinates) and of elements."""
    lines = [line.strip() for line in text.splitlines()]
    nodes = _section(lines, "Nodes")
    tags: list[int] = []
    points: list[list[float]] = []
    at = 1
    while at < len(nodes):
        count = int(nodes[at].split()[3])
        tags += [int(line) for line in nodes[at + 1 : at + 1 + count]]
        points += [
            [float(word) for word in line.split()[:3]] for line in nodes[at + 1 + count : at + 1 + 2 * count]
        ]
        at += 1 + 2 * count
    place = dict(zip(tags, range(len(tags)), strict=True))
    elements = _section(lines, "Elements")
    cells: list[list[int]] = []
    at = 1
    while at < len(elements):
        _, _, kind, count = (int(word) for word in elements[at].split())
        if _is_cell("gmsh", kind):
            rows = elements[at + 1 : at + 1 + count]
            cells += [[place[int(word)] for word in line.split()[1:5]] for line in rows]
        at += 1 + count
    return TetraMesh(
        np.array(points, dtype=float).reshape(-1, 3), np.array(cells, dtype=np.int64).reshape(-1, 4)
    )


def _vtk(text: str) -> TetraMesh:
    """Legacy VTK: an UNSTRUCTURED_GRID with POINTS, CELLS and CELL_TYPES."""
    words = text.split()
    upper = [word.upper() for word in words]
    if "UNSTRUCTURED_GRID" not in upper:
        raise ValueError("no UNSTRUCTURED_GRID")
    at = upper.index("POINTS")
    count = int(words[at + 1])
    points = np.array(words[at + 3 : at + 3 + 3 * count], dtype=float).reshape(-1, 3)
    at = upper.index("CELL_TYPES")
    kinds = [int(word) for word in words[at + 2 : at + 2 + int(words[at + 1])]]
    at = upper.index("CELLS")
    if upper[at + 3] == "OFFSETS":
        offsets, ids = int(words[at + 1]), int(words[at + 2])
        ends = [int(word) for word in words[at + 5 : at + 5 + offsets]]
        start = at + 5 + offsets + 2
        flat = [int(word) for word in words[start : start + ids]]
        lists = [flat[first:last] for first, last in pairwise(ends)]
    else:
        flat = [int(word) for word in words[at + 3 : at + 3 + int(words[at + 2])]]
        lists, place = [], 0
        while place < len(flat):
            lists.append(flat[place + 1 : place + 1 + flat[place]])
            place += 1 + flat[place]
    cells = [corners for corners, kind in zip(lists, kinds, strict=True) if _is_cell("vtk", kind)]
    return TetraMesh(points, np.array(cells, dtype=np.int64).reshape(-1, 4))


def _is_cell(form: str, kind: int) -> bool:
    """Whether an element is a tetrahedron; ValueError for another that fills space."""
    if kind == TETRAHEDRON[form]:
        return True
    if kind not in FLAT[form]:
        raise ValueError(f"it has elements of type {kind}, which are not linear tetrahedra")
    return False


def _by_meshio(path: Path, hint: str) -> TetraMesh:
    try:
        import meshio
    except ImportError as error:
        raise UsageError(
            "is neither Gmsh 4.1 nor legacy VTK in ASCII", field="mesh", value=str(path),
            hint=f"{hint}; or: pip install 'elbowroom[meshes]', which reads more",
        ) from error  # fmt: skip
    try:
        read = meshio.read(path)
    except (Exception, SystemExit) as error:  # meshio raises its own and exits
        raise UsageError("cannot be read as a mesh", field="mesh", value=str(path), hint=hint) from error
    cells = [block.data for block in read.cells if block.type == "tetra"]
    points = np.asarray(read.points, dtype=float)
    joined = np.concatenate(cells) if cells else np.empty((0, 4))
    return _sound(TetraMesh(points, np.asarray(joined, dtype=np.int64)), path)


def check_mesh(mesh: TetraMesh, path: Path, *, cavities: bool = False) -> Ints:
    """The neighbours (m, 4) of each cell, WALL on the boundary. UsageError for a mesh that no steps can be
    computed on; `cavities`: whether the boundary may have several surfaces.
    """
    _check_volumes(mesh, path)
    corners = np.sort(mesh.cells, axis=1)
    _, first, counts = np.unique(corners, axis=0, return_index=True, return_counts=True)
    if (counts > 1).any():
        _refuse(path, f"cell {first[counts > 1][0]} is there {counts.max()} times", "remove repeated cells")
    faces = np.sort(mesh.cells[:, FACES], axis=2).reshape(-1, 3)
    _, which, times = np.unique(faces, axis=0, return_inverse=True, return_counts=True)
    which = which.reshape(-1)
    if (times > 2).any():
        _refuse(path, f"a face belongs to {times.max()} cells", "remove cells that overlap")
    order = np.argsort(which, kind="stable")
    ordered = which[order]
    pairs = np.flatnonzero(ordered[:-1] == ordered[1:])
    neighbours = np.full(faces.shape[0], WALL, dtype=np.int64)
    one, other = order[pairs], order[pairs + 1]
    neighbours[one], neighbours[other] = other // 4, one // 4
    by_cell: Ints = neighbours.reshape(-1, 4)
    _check_parts(by_cell, path)
    if not cavities:
        _check_holes(faces[neighbours == WALL], path)
    return by_cell


def _check_volumes(mesh: TetraMesh, path: Path) -> None:
    volumes = signed_volumes(mesh)
    corners = mesh.points[mesh.cells]
    longest = np.linalg.norm(corners[:, :, None] - corners[:, None, :], axis=3).max(axis=(1, 2))
    flat = np.flatnonzero(np.abs(volumes) <= THIN * longest**3)
    if flat.size:
        _refuse(path, f"cell {flat[0]} is flat, one of {flat.size}", "let Gmsh optimize the mesh")
    inverted = np.flatnonzero(volumes < 0)
    if inverted.size:
        text = f"cell {inverted[0]} is inverted, one of {inverted.size}"
        _refuse(path, text, "exchange two of its corners, or mesh it again")


def _check_parts(neighbours: Ints, path: Path) -> None:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    cells, faces = np.nonzero(neighbours != WALL)
    count = len(neighbours)
    graph = coo_array((np.ones(len(cells)), (cells, neighbours[cells, faces])), shape=(count, count))
    parts, _ = connected_components(graph, directed=False)
    if parts > 1:
        _refuse(path, f"falls into {parts} parts that share no face", "keep one part, or join them")


def _check_holes(boundary: Ints, path: Path) -> None:
    """The boundary of a body without holes is one surface: triangles connected by edges."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    edges = np.sort(boundary[:, [[0, 1], [0, 2], [1, 2]]], axis=2).reshape(-1, 2)
    _, which = np.unique(edges, axis=0, return_inverse=True)
    triangles = np.repeat(np.arange(len(boundary)), 3)
    size = len(boundary) + int(which.max()) + 1
    graph = coo_array(
        (np.ones(len(triangles)), (triangles, len(boundary) + which.reshape(-1))), shape=(size, size)
    )
    surfaces, _ = connected_components(graph, directed=False)
    if surfaces > 1:
        _refuse(
            path, f"has a hole inside: its boundary is {surfaces} separate surfaces",
            "fill it; if it is meant to be there: --set cavities=true",
        )  # fmt: skip


def _refuse(path: Path, what: str, hint: str) -> None:
    raise UsageError(what, field="mesh", value=str(path), hint=hint)


def signed_volumes(mesh: TetraMesh) -> Floats:
    """Of each cell, negative where its corners are in the other order than Gmsh's and VTK's."""
    a, b, c, d = (mesh.points[mesh.cells[:, corner]] for corner in range(4))
    volumes: Floats = np.einsum("ij,ij->i", np.cross(b - a, c - a), d - a) / 6
    return volumes


def write_mesh(path: Path, mesh: TetraMesh, neighbours: Ints) -> None:
    """Writes what the diffusion solver reads (apps/diffusion/mesh.hpp), cells by their place along x; whole
    or not at all.
    """
    centres = mesh.points[mesh.cells].mean(axis=1)
    order = np.argsort(centres[:, 0], kind="stable")
    place = np.empty(len(order) + 1, dtype=np.int64)
    place[order], place[-1] = np.arange(len(order)), WALL
    conductances = _conductances(mesh, neighbours, centres)
    low = mesh.points[mesh.cells].min(axis=(0, 1))
    extent = mesh.points[mesh.cells].max(axis=(0, 1)) - low
    parts = (
        place[neighbours[order]],
        conductances[order],
        np.abs(signed_volumes(mesh))[order],
        (centres - low)[order],
        extent,
    )

    def write(temporary: Path) -> None:
        with temporary.open("wb") as file:
            file.write(MAGIC + np.int64(len(order)).tobytes())
            for part in parts:
                file.write(np.ascontiguousarray(part).tobytes())

    write_with(path, write)


def _conductances(mesh: TetraMesh, neighbours: Ints, centres: Floats) -> Floats:
    """Area of each face times the cosine to it of the way between both centres, over its length; 0 at walls.
    Computed from the cell with the lower number, so that both cells have the same.
    """
    cells, faces = np.nonzero(neighbours != WALL)
    others = neighbours[cells, faces]
    corners = mesh.points[mesh.cells[cells[:, None], FACES[faces]]]
    area = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]) / 2
    way = centres[others] - centres[cells]
    values = np.abs(np.einsum("ij,ij->i", area, way)) / np.einsum("ij,ij->i", way, way)
    table = np.zeros(neighbours.shape)
    table[cells, faces] = values
    swap = cells > others
    back = np.argmax(neighbours[others[swap]] == cells[swap][:, None], axis=1)
    table[cells[swap], faces[swap]] = table[others[swap], back]
    return table
