"""Sizes and lists of cores as people write them."""

from __future__ import annotations

import pytest

from elbowroom.errors import UsageError
from elbowroom.quantities import (
    format_cores,
    format_size,
    parse_bandwidth,
    parse_cores,
    parse_duration,
    parse_mb_per_s,
    parse_percent,
    parse_share,
    parse_size,
    parse_time,
)


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
        ("64k", 65536),
        ("64K", 65536),
        ("2M", 2**21),
        ("64Ki", 65536),
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


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("1.5GB/s", 1.5e9),
        ("50 MB/s", 5e7),
        ("1GiB/s", 2**30),
        ("100Gbit/s", 12.5e9),
        ("100Gbps", 12.5e9),
        ("10 GB / s", 1e10),
        ("10GBps", 1e10),
        (6e9, 6e9),
    ],
)
def test_a_bandwidth_is_read_as_bytes_per_second(text: str | float, rate: float) -> None:
    assert parse_bandwidth(text, "nic") == rate


@pytest.mark.parametrize("text", ["", "5", "6GB", "fast", "-1GB/s", "100Gb/s", "9" * 60 + "GB/s", "nan"])
def test_what_is_no_bandwidth_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_bandwidth(text, "nic")
    assert (error.value.field, error.value.value) == ("nic", text)
    assert "B/s" in error.value.hint


def test_bits_are_not_taken_for_bytes() -> None:
    with pytest.raises(UsageError, match="nic '100Gb/s': may mean bits or bytes; write Gbit/s or GB/s"):
        parse_bandwidth("100Gb/s", "nic")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("200us", 2e-4),
        ("0.2 ms", 2e-4),
        ("2\u00b5s", 2e-6),
        ("500ns", 5e-7),
        ("90", 90.0),
        ("1e-3", 1e-3),
        ("5min", 300.0),
        ("1h30m", 5400.0),
        ("1h 30min 5s", 5405.0),
        ("1d", 86400.0),
        ("0", 0.0),
    ],
)
def test_a_time_is_read_as_seconds(text: str, seconds: float) -> None:
    assert parse_time(text, "timeout") == seconds


@pytest.mark.parametrize("text", ["", "s", "1h30", "5 5", "-1", "nan", "inf", "2 fortnights", "0x10", "1_0"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a duration; write seconds or a unit"):
        parse_time(text, "timeout")


@pytest.mark.parametrize("text", ["0", "31d", "1e99"])
def test_a_duration_is_above_zero_and_below_a_month(text: str) -> None:
    with pytest.raises(UsageError, match="is not between 0 and 30 days"):
        parse_duration(text, "budget")


def test_shares_percentages_and_mb_per_s() -> None:
    assert [parse_share(text, "noise") for text in ("0.3", "30%", "30 %", "1e-2")] == [0.3, 0.3, 0.3, 0.01]
    assert [parse_percent(text, "limit") for text in ("30", "30%", "30 %")] == [0.3, 0.3, 0.3]
    assert [parse_mb_per_s(text, "pace") for text in ("12000", "12GB/s", "12 GB/s")] == [12000.0] * 3
    for parse in (parse_share, parse_percent, parse_mb_per_s):
        with pytest.raises(UsageError, match=r"pace 'many': is not a"):
            parse("many", "pace")
