"""The cache model counts what valgrind's simulators count on the same accesses."""

from __future__ import annotations

import pytest

import cache_pattern

CASES = (
    "sender:write:0",
    "sender:write:40000",
    "both:read:30000",
    "receiver:write:100000",
    "receiver:read:400000",
)
LIMIT = 0.05

pytestmark = pytest.mark.skipif(
    bool(cache_pattern.missing()), reason=f"{cache_pattern.missing()} is not installed"
)


@pytest.mark.parametrize(("d1", "ll"), [("49152,12,64", "262144,8,64"), ("8192,1,64", "131072,2,64")])
def test_the_misses_of_a_message_are_those_of_callgrind_within_five_per_cent(d1: str, ll: str) -> None:
    found = cache_pattern.messages(d1, ll, CASES)
    assert len(found) == 2 * len(CASES)
    assert all(abs(one.difference) <= LIMIT for one in found), found
    assert max(one.model for one in found if one.cache == "LL") > min(one.model for one in found)


def test_the_misses_of_all_accesses_are_those_of_cachegrind_within_five_per_cent() -> None:
    found = cache_pattern.all_accesses("49152,12,64", "262144,8,64", CASES)
    assert all(abs(one.difference) <= LIMIT and one.model > 0 for one in found), found


def test_a_model_of_other_caches_than_valgrinds_is_seen_as_a_difference() -> None:
    case = ["sender:write:40000"]
    right = cache_pattern.messages("49152,12,64", "262144,8,64", case)[0]
    wrong = cache_pattern.messages("65536,16,64", "262144,8,64", case)[0]
    assert abs(wrong.model - right.valgrind) > LIMIT * right.valgrind
