"""The cache model beside valgrind's cachegrind and callgrind, on the same accesses.

    python benchmarks/caches.py [--limit 5]

A program that performs the accesses of one exchange (core/caches/check) runs under callgrind, which counts
the data misses of one message in the steady state, and under cachegrind, which counts those of all accesses
from empty caches (less what the program misses that performs none). The model counts the same of the
addresses that the program printed. valgrind simulates one core and two levels, so both sides of the message
are on it. Exit code 1 when any difference is above the limit.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

from command import Command, status

CHECK: dict[str, Any] = runpy.run_path(str(Path(__file__).parents[1] / "tests" / "cache_pattern.py"))

# The first level of this project's two-core machine, of the paper's processor, and two unusual ones.
SHAPES = (
    ("49152,12,64", "2097152,16,64"),
    ("32768,8,64", "262144,8,64"),
    ("32768,8,64", "1048576,16,64"),
    ("16384,4,64", "131072,2,64"),
    ("8192,1,64", "4194304,16,64"),
)
SIZES = (0, 400, 4_000, 20_000, 40_000, 100_000, 238_400, 400_000, 1_000_000, 2_337_000, 4_000_000)


def main() -> int:
    parser = Command("The cache model beside valgrind's.", smoke="--sizes 400 --shapes 1")
    parser.add_argument("--limit", type=float, default=5.0, help="per cent")
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="of messages, bytes")
    parser.add_argument("--shapes", type=int, default=len(SHAPES), help="of caches, the first ones")
    chosen = parser.parse_args()
    if CHECK["missing"]():
        print(f"{CHECK['missing']()} is not installed", file=sys.stderr)
        return 1
    cases = [
        f"{who}:{access}:{size}"
        for who in ("sender", "receiver", "both")
        for access in ("read", "write")
        for size in chosen.sizes.split(",")
    ]
    worst = 0.0
    heads = ("D1", "LL", "case", "cache", "valgrind", "model", "difference")
    print("{:>12} {:>14} {:>24} {:>5} {:>10} {:>10} {:>10}".format(*heads))
    for d1, ll in SHAPES[: chosen.shapes]:
        for found in [*CHECK["messages"](d1, ll, cases), *CHECK["all_accesses"](d1, ll, cases)]:
            worst = max(worst, abs(found.difference))
            print(
                f"{d1:>12} {ll:>14} {found.what:>24} {found.cache:>5} {found.valgrind:>10} {found.model:>10} "
                f"{found.difference:>+10.2%}"
            )
    verdict = "within" if worst <= chosen.limit / 100 else "above"
    print(f"largest difference {worst:.2%}, {verdict} {chosen.limit:g} %")
    return status(chosen, worst > chosen.limit / 100)


if __name__ == "__main__":
    sys.exit(main())
