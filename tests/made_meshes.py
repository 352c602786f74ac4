"""Meshes of tetrahedra with a known shape."""

from __future__ import annotations

import itertools

import numpy as np

from elbowroom.store.meshes import TetraMesh, signed_volumes


def box(size: int = 2, jiggle: float = 0.0) -> TetraMesh:
    """A box of cubes, each of six tetrahedra; inner points moved a little."""
    grid = np.array(list(itertools.product(range(size + 1), repeat=3)), dtype=float)
    inner = ((grid > 0) & (grid < size)).all(axis=1)
    grid[inner] += jiggle * np.random.default_rng(1).standard_normal((int(inner.sum()), 3))
    number = {tuple(corner): at for at, corner in enumerate(itertools.product(range(size + 1), repeat=3))}
    cells = []
    for cube in itertools.product(range(size), repeat=3):
        for path in itertools.permutations(range(3)):
            corners = [np.array(cube)]
            for axis in path:
                corners.append(corners[-1] + np.eye(3, dtype=int)[axis])
            cells.append([number[tuple(int(x) for x in corner)] for corner in corners])
    mesh = TetraMesh(grid, np.array(cells))
    wrong = signed_volumes(mesh) < 0
    mesh.cells[wrong] = mesh.cells[wrong][:, [1, 0, 2, 3]]
    return mesh


def gmsh(mesh: TetraMesh) -> str:
    """The mesh as Gmsh 4.1 writes it, with a triangle beside its cells."""
    points = "\n".join(" ".join(map(str, point)) for point in mesh.points)
    tags = "\n".join(str(10 + at) for at in range(len(mesh.points)))
    cells = "\n".join(
        f"{at + 1} {' '.join(str(10 + corner) for corner in cell)}" for at, cell in enumerate(mesh.cells)
    )
    return (
        f"$MeshFormat\n4.1 0 8\n$EndMeshFormat\n$Nodes\n1 {len(mesh.points)} 10 {len(mesh.points) + 9}\n"
        f"3 1 0 {len(mesh.points)}\n{tags}\n{points}\n$EndNodes\n$Elements\n2 {len(mesh.cells) + 1} 1 "
        f"{len(mesh.cells)}\n2 1 2 1\n1 10 11 12\n3 1 4 {len(mesh.cells)}\n{cells}\n$EndElements\n"
    )
