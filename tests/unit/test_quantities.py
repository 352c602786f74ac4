"""Sizes and lists of cores as people write them."""

from __future__ import annotations

import pytest

from elbowroom.errors import UsageError
from elbowroom.quantities import format_cores, format_size, parse_cores, parse_size


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("4", 4),
        ("4B", 4),
        ("64MiB", 64 * 2**20),
        ("64MB", 64_000_000),
        ("64 MiB", 64 * 2**20),
        ("1.5MiB", 3 * 2**19),
        ("64kb", 64_000),
        ("1GiB", 2**30),
        (4096, 4096),
    ],
)
def test_a_size_is_read_as_bytes(text: str | int, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "MiB", "4 parsecs", "0", "0MiB", "-4", "-1KiB", "1.3B", "4,5", "1e6"])
def test_what_is_no_size_is_refused_with_field_and_mend(text: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_size(text)
    assert error.value.field == "sizes"
    assert error.value.value == text
    assert "64MiB" in error.value.hint


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (4, "4 B"),
        (64 * 2**20, "64 MiB"),
        (64_000_000, "64 MB"),
        (65536, "64 KiB"),
        (4097, "4097 B"),
        (1000, "1 kB"),
    ],
)
def test_a_size_prints_which_unit_it_is_in(size: int, text: str) -> None:
    assert format_size(size) == text


def test_cores_are_numbers_and_ranges() -> None:
    assert parse_cores("1-3,9") == (1, 2, 3, 9)
    assert parse_cores(" 4 ") == (4,)
    assert parse_cores("0-6:2, 9") == (0, 2, 4, 6, 9)
    assert format_cores((1, 2, 3, 9)) == "1-3,9"


@pytest.mark.parametrize("text", ["", "a", "1-", "3-1", "1,1", "1-3,2", "-1", "0-99999999"])
def test_what_is_no_list_of_cores_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_cores(text)
    assert error.value.field == "comp_cores"
