"""Times of simulated broadcasts by tree, beside SimGrid's own MPI_Bcast on the same network.

    python benchmarks/broadcast.py [--json]

The network of Fig. 4.3 of Swartvagher's thesis as far as it is known: 38 recipients, each with a link of
6 GB/s and 2 us to one switch; 429 KiB, and 32 MiB. SMPI runs MPI_Bcast, by its own and by MPICH's, Open MPI's
and MVAPICH2's choice of an algorithm, with the same network model. Then 39 recipients on 4 racks with uplinks
of 12 GB/s: ranks fill rack after rack, or are shuffled, or are shuffled and the library knows the racks. Then
up to 999 recipients: times are to grow with the logarithm of the number of ranks (GROWTH). Exit code 1 where
a bound of the last column is missed. All is simulated: nothing is measured. Needs libsimgrid-dev; seconds.
"""

from __future__ import annotations

import json
import math
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from command import Command, status

import elbowroom

RECIPIENTS = 38
SIZE, LARGE = 429 * 1024, 32 * 1024**2
BANDWIDTH, LATENCY = 6e9, 2e-6
PROGRAM = Path(__file__).parents[1] / "lib" / "broadcast" / "smpi_benchmark.c"
MODEL = (
    "network/model:CM02", "network/crosstraffic:0", "network/TCP-gamma:0", "network/latency-factor:1",
    "network/bandwidth-factor:1", "network/weight-S:0", "smpi/bw-factor:0:1", "smpi/lat-factor:0:1",
)  # fmt: skip
"""As lib/broadcast/simulate_main.cpp sets it; SMPI's own factors are 1, too."""
PLATFORM = f"""<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="cluster" prefix="node-" suffix="" radical="0-{RECIPIENTS}" speed="1Gf" bw="6GBps" lat="2us"
           sharing_policy="SPLITDUPLEX"/>
</platform>
"""


RACK_TREES = (
    ("binomial", "two-level-binomial", 0),
    ("binary, segments of 32 KiB", "two-level-binary", 32768),
    ("chain, segments of 32 KiB", "two-level-chain", 32768),
    ("two trees, segments of 32 KiB", "two", 32768),
    ("auto", "auto", 0),
)
"""Trees of two levels are the others where the library knows no racks."""

GROWING = (9, 30, 99, 300, 999)
"""Numbers of recipients."""

GROWTH = 0.15
"""Times may differ by this share from a + b log2(ranks), with the best a and b."""


class Row(NamedTuple):
    """A broadcast and its time; `most`: the bound, None where there is none."""

    what: str
    recipients: int
    size: int
    time_us: float
    most: float | None = None


def smpi(size: int, selector: str, folder: Path) -> float:
    """us of MPI_Bcast, by the choice of one library."""
    (folder / "platform.xml").write_text(PLATFORM)
    (folder / "hosts").write_text("".join(f"node-{rank}\n" for rank in range(RECIPIENTS + 1)))
    if not (folder / "program").exists():
        subprocess.run(["smpicc", "-O1", str(PROGRAM), "-o", str(folder / "program")], check=True)
    words = ["-np", str(RECIPIENTS + 1), "-platform", "platform.xml", "-hostfile", "hosts"]
    options = [f"--cfg={setting}" for setting in (*MODEL, f"smpi/coll-selector:{selector}")]
    done = subprocess.run(
        ["smpirun", *words, *options, "./program", str(size)],
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
    )
    found = re.search(r"^time ([\d.]+) us", done.stdout, re.MULTILINE)
    assert found is not None, done.stdout
    return float(found[1])


def ours(
    tree: str, segment: int = 0, *, recipients: int = RECIPIENTS, size: int = SIZE, **others: Any
) -> float:
    """us of our broadcast."""
    done = elbowroom.simulate_broadcast(
        recipients, size, bandwidth=BANDWIDTH, latency=LATENCY, tree=tree, segment=segment, **others
    )
    return done.seconds * 1e6


def rows(folder: Path) -> Iterator[Row]:
    """All broadcasts."""
    own = smpi(SIZE, "default", folder)
    yield Row("MPI_Bcast of SMPI", RECIPIENTS, SIZE, own)
    for selector in ("mpich", "ompi", "mvapich2"):
        yield Row(f"MPI_Bcast as {selector} chooses", RECIPIENTS, SIZE, smpi(SIZE, selector, folder))
    yield Row("flat", RECIPIENTS, SIZE, ours("flat"))
    yield Row("binary", RECIPIENTS, SIZE, ours("binary"))
    yield Row("binomial", RECIPIENTS, SIZE, ours("binomial"), 1.02 * own)
    yield Row("binary, segments of 64 KiB", RECIPIENTS, SIZE, ours("binary", 65536), 400)
    yield Row("two trees, segments of 32 KiB", RECIPIENTS, SIZE, ours("two", 32768), 300)
    yield Row("MPI_Bcast of SMPI", RECIPIENTS, LARGE, smpi(LARGE, "default", folder))
    yield Row("binomial", RECIPIENTS, LARGE, ours("binomial", size=LARGE))
    yield Row(
        "chain, segments of 256 KiB",
        RECIPIENTS,
        LARGE,
        ours("chain", 262144, size=LARGE),
        LARGE / 4.0e9 * 1e6,
    )
    yield Row("auto", RECIPIENTS, SIZE, ours("auto"), 300)
    yield Row("auto", RECIPIENTS, LARGE, ours("auto", size=LARGE), LARGE / 4.0e9 * 1e6)
    yield from rows_of_racks()
    yield from growing("binomial", "binomial")
    yield from growing("two trees, segments of 32 KiB", "two", 32768)


def rows_of_racks() -> Iterator[Row]:
    """Four racks, by the order of ranks."""
    for name, tree, segment in RACK_TREES:
        for order in ("rank", "shuffled", "rack"):
            time = ours(tree, segment, recipients=39, platform="fat-tree", order=order)
            yield Row(f"{name}; {order}", 39, SIZE, time)


def growing(name: str, tree: str, segment: int = 0) -> list[Row]:
    """A row for each number of recipients, whose bound is the logarithm that fits them best, and a share."""
    times = [ours(tree, segment, recipients=recipients) for recipients in GROWING]
    logarithms = [math.log2(recipients + 1) for recipients in GROWING]
    slope, intercept = statistics.linear_regression(logarithms, times)
    return [
        Row(name, recipients, SIZE, time, (1 + GROWTH) * (intercept + slope * logarithm))
        for recipients, time, logarithm in zip(GROWING, times, logarithms, strict=True)
    ]


def main() -> int:
    parser = Command(__doc__, smoke="")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = list(rows(Path(folder)))
    if options.json:
        print(json.dumps([row._asdict() for row in found], indent=1))
    else:
        print(f"{'simulated':<32} {'recipients':>10} {'bytes':>9} {'us':>8} {'MB/s':>6} {'bound, us':>9}")
        for row in found:
            most = "" if row.most is None else f"{row.most:.0f}"
            rate = row.size / row.time_us
            times = f"{row.time_us:>8.0f} {rate:>6.0f} {most:>9}"
            print(f"{row.what:<32} {row.recipients:>10} {row.size:>9} {times}")
    return status(options, any(row.most is not None and row.time_us > row.most for row in found))


if __name__ == "__main__":
    sys.exit(main())
