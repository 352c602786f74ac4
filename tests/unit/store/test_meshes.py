"""Meshes of files: formats, what is refused, and what the diffusion solver is given."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from elbowroom.errors import UsageError
from elbowroom.store.meshes import WALL, TetraMesh, check_mesh, read_mesh, write_mesh
from made_meshes import box, gmsh

HERE = Path("body.msh")


def vtk(mesh: TetraMesh) -> str:
    points = "\n".join(" ".join(map(str, point)) for point in mesh.points)
    cells = "\n".join(f"4 {' '.join(map(str, cell))}" for cell in mesh.cells)
    kinds = "\n".join(["10"] * len(mesh.cells))
    return (
        "# vtk DataFile Version 3.0\nbody\nASCII\nDATASET UNSTRUCTURED_GRID\n"
        f"POINTS {len(mesh.points)} double\n{points}\n"
        f"CELLS {len(mesh.cells)} {5 * len(mesh.cells)}\n{cells}\nCELL_TYPES {len(mesh.cells)}\n{kinds}\n"
    )


@pytest.mark.parametrize(("name", "text"), [("body.msh", gmsh(box())), ("body.vtk", vtk(box()))])
def test_a_mesh_of_each_format_is_read(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    mesh = read_mesh(tmp_path / name)
    assert mesh.points.tolist() == box().points.tolist()
    assert mesh.cells.tolist() == box().cells.tolist()


def test_neighbours_share_their_faces() -> None:
    mesh = box(3, jiggle=0.1)
    neighbours = check_mesh(mesh, HERE)
    assert (neighbours == WALL).sum() == 6 * 2 * 9
    for cell, others in enumerate(neighbours):
        for other in others[others != WALL]:
            assert cell in neighbours[other]
            assert len(set(mesh.cells[cell]) & set(mesh.cells[other])) == 3


def with_cells(mesh: TetraMesh, cells: np.ndarray) -> TetraMesh:
    return TetraMesh(mesh.points, cells)


def damaged(kind: str) -> TetraMesh:
    mesh = box(3)
    cells = mesh.cells.copy()
    if kind == "inverted":
        cells[7] = cells[7][[1, 0, 2, 3]]
    elif kind == "repeated":
        cells = np.concatenate([cells, cells[5:6, [1, 2, 0, 3]]])
    elif kind == "flat":
        mesh.points[cells[4][0]] = mesh.points[cells[4][1:]].mean(axis=0)
    elif kind == "hole":
        middle = np.abs(mesh.points[cells].mean(axis=1) - 1.5).max(axis=1) < 0.5
        cells = cells[~middle]
    elif kind == "parts":
        cells = np.concatenate([cells[:6], cells[-6:]])
    return with_cells(mesh, cells)


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("inverted", "cell 7 is inverted, one of 1"),
        ("repeated", "is there 2 times"),
        ("flat", "is flat"),
        ("hole", "has a hole inside: its boundary is 2 separate surfaces"),
        ("parts", "falls into 2 parts"),
    ],
)
def test_a_damaged_mesh_is_refused_in_one_sentence(kind: str, said: str) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        check_mesh(damaged(kind), HERE)
    assert (caught.value.field, caught.value.value) == ("mesh", "body.msh")


def test_a_hole_that_is_meant_to_be_there_is_accepted() -> None:
    assert (check_mesh(damaged("hole"), HERE, cavities=True) == WALL).sum() == 6 * 2 * 9 + 6 * 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "neither Gmsh 4.1 nor|cannot be read as a mesh"),
        (gmsh(box()).replace("3 1 4 48", "3 1 5 48"), "elements of type 5"),
        (gmsh(box())[:900], "cannot be read as a mesh"),
        (gmsh(box()).replace("\n1 10 ", "\n1 99 ", 2), "cannot be read as a mesh"),
        (vtk(box()).replace("double\n0.0", "double\nnan", 1), "unknown points"),
    ],
)
def test_files_that_are_no_mesh_of_tetrahedra_are_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "body").write_text(text)
    with pytest.raises(UsageError, match=said) as caught:
        read_mesh(tmp_path / "body")
    assert caught.value.field == "mesh"


def test_what_is_written_has_one_conductance_for_both_cells_of_a_face(tmp_path: Path) -> None:
    mesh = box(3, jiggle=0.1)
    write_mesh(tmp_path / "m", mesh, check_mesh(mesh, HERE))
    data = (tmp_path / "m").read_bytes()
    count = int(np.frombuffer(data[8:16], dtype=np.int64)[0])
    neighbours = np.frombuffer(data[16 : 16 + 32 * count], dtype=np.int64).reshape(-1, 4)
    conductances = np.frombuffer(data[16 + 32 * count : 16 + 64 * count]).reshape(-1, 4)
    volumes = np.frombuffer(data[16 + 64 * count : 16 + 72 * count])
    assert volumes.sum() == pytest.approx(27)
    for cell, row in enumerate(neighbours):
        for face, other in enumerate(row):
            back = np.flatnonzero(neighbours[other] == cell) if other != WALL else []
            assert other == WALL or conductances[other][back[0]] == conductances[cell][face] > 0
    assert len(data) == 16 + 96 * count + 24
