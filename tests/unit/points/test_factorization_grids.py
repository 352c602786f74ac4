"""Grids of processes, and the operations of a factorization."""

from __future__ import annotations

import pytest

from elbowroom.errors import UsageError
from elbowroom.points.factorizations import count_flops, parse_grid


@pytest.mark.parametrize(("text", "grid"), [("14x14", (14, 14)), ("1x196", (1, 196))])
def test_a_grid_has_rows_and_columns(text: str, grid: tuple[int, int]) -> None:
    assert parse_grid(text) == grid


@pytest.mark.parametrize("text", ["", "4", "0x4", "4x", "4x4x4", "-1x2", "2 x 2"])
def test_other_grids_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not rows x columns"):
        parse_grid(text)


def test_a_qr_of_a_square_matrix_has_four_times_the_operations_of_cholesky() -> None:
    assert count_flops("cholesky", 300, 300) == 9e6
    assert count_flops("qr", 300, 300) == pytest.approx(36e6)


def test_a_tall_qr_has_two_operations_for_each_element_and_column() -> None:
    assert count_flops("qr", 10**6, 2) == pytest.approx(2 * 10**6 * 2**2, rel=1e-5)
    assert count_flops("qr", 2, 10**6) == count_flops("qr", 10**6, 2)
