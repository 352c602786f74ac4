"""Logs of other benchmarks as the readings of a site."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from elbowroom.accept.acceptance import examine_logs
from elbowroom.accept.document import AcceptanceDocument
from elbowroom.accept.logged import read_site
from elbowroom.errors import UsageError

RANKS = 24


def table(path: Path, slow: dict[tuple[int, int], float] | None = None, seed: int = 1) -> Path:
    """A table of all pairs whose bandwidths scatter by 0.1 %, some by more; pairs lose as in `slow`."""
    random = np.random.default_rng(seed)
    lines = ["src,dst,lat(us),bandwidth((Mbytes/sec)"]
    for source in range(RANKS):
        for target in range(RANKS):
            if source != target:
                loss = random.exponential(0.003) if random.random() < 0.05 else random.normal(0, 0.001)
                kept = 1 - (slow or {}).get((source, target), 0.0)
                latency = random.choice([1.02, 1.03, 1.04, 1.1], p=[0.3, 0.4, 0.2, 0.1])
                lines.append(f"{source},{target},{latency:.2f},{12000 * np.exp(-loss) * kept:.6f}")
    path.write_text("\n".join([*lines, ""]))
    return path


def judged(path: Path) -> AcceptanceDocument:
    return examine_logs(read_site(path), name=str(path))


def test_a_healthy_table_of_all_pairs_has_no_suspect(tmp_path: Path) -> None:
    for seed in range(3):
        document = judged(table(tmp_path / "pairs.log", seed=seed))
        assert (document.nodes, document.suspects, document.exit_code) == (RANKS, (), 0)


def test_a_node_that_loses_7_percent_is_found_in_a_table(tmp_path: Path) -> None:
    slow = {(a, b): 0.07 for a in range(RANKS) for b in range(RANKS) if 9 in (a, b)}
    [one] = judged(table(tmp_path / "pairs.log", slow)).suspects
    assert (one.node, one.name, one.quantity, one.cause) == (9, "rank9", "bandwidth", "link")
    assert one.loss == pytest.approx(0.07, abs=0.005)


def test_a_link_that_loses_7_percent_both_ways_is_found_and_one_value_is_not(tmp_path: Path) -> None:
    [one] = judged(table(tmp_path / "pairs.log", {(3, 17): 0.07, (17, 3): 0.07})).suspects
    assert (one.node, one.between) == (None, (3, 17))
    assert judged(table(tmp_path / "pairs.log", {(3, 17): 0.07})).suspects == ()


def test_two_tables_of_a_folder_are_quantities_of_their_own(tmp_path: Path) -> None:
    table(tmp_path / "one.log")
    table(tmp_path / "two.log", seed=2)
    names = {one.quantity.name for one in read_site(tmp_path).readings}
    assert names == {f"{name} of {file}.log" for name in ("latency", "bandwidth") for file in ("one", "two")}


STREAM = """\
Number of Threads counted = 4
Function    Best Rate MB/s  Avg time     Min time     Max time
Copy:           {rate:.1f}     {time:.6f}     {time:.6f}     {time:.6f}
"""


def streams(folder: Path, slow: int | None = None) -> Path:
    random = np.random.default_rng(1)
    for node in range(16):
        rate = 180e3 * random.normal(1, 0.003) * (0.75 if node == slow else 1.0)
        (folder / f"n{node}.log").write_text(STREAM.format(rate=rate, time=1600 / rate))
    return folder


def test_a_log_of_each_node_is_judged_by_the_others(tmp_path: Path) -> None:
    assert judged(streams(tmp_path)).suspects == ()
    [one] = judged(streams(tmp_path, slow=11)).suspects
    assert (one.name, one.quantity, one.cause) == ("n11", "stream STREAM function Copy rate", "unknown")


def test_two_logs_of_one_node_are_refused(tmp_path: Path) -> None:
    streams(tmp_path)
    (tmp_path / "n3.again.log").write_text((tmp_path / "n3.log").read_text())
    with pytest.raises(
        UsageError, match="has 2 values of stream STREAM function Copy rate for node n3, and 1"
    ):
        read_site(tmp_path)


def test_logs_of_one_node_only_are_refused(tmp_path: Path) -> None:
    (tmp_path / "n0.log").write_text(STREAM.format(rate=16e3, time=0.1))
    with pytest.raises(UsageError, match="holds 1 node, and a node is judged by others"):
        judged(tmp_path)


def test_logs_that_have_no_value_in_common_are_refused(tmp_path: Path) -> None:
    for node, function in enumerate(("Copy", "Scale", "Add")):
        text = STREAM.format(rate=16e3, time=0.1).replace("Copy", function)
        (tmp_path / f"n{node}.log").write_text(text)
    with pytest.raises(UsageError, match="has no value of which 3 nodes of a kind have one"):
        judged(tmp_path)


NCCL = """\
# nThread 1 nGpus 8 minBytes 0 maxBytes 67108864 step: 2(factor) warmup iters: 5 iters: 20 validation: 0
#
#       size         count    type   redop     time   algbw   busbw  error
#        (B)    (elements)                     (us)  (GB/s)  (GB/s)
           0             0   float     sum    35.20    0.00    0.00    N/A
    67108864      16777216   float     sum   600.00  {rate:.2f}  {rate:.2f}  0e+00
"""


def test_rates_of_messages_of_no_bytes_are_left_out(tmp_path: Path) -> None:
    for node in range(8):
        (tmp_path / f"n{node}.log").write_text(NCCL.format(rate=111 + node % 3 / 10))
    assert judged(tmp_path).suspects == ()
    assert all("size 67108864" in one.quantity.name for one in read_site(tmp_path).readings)


def test_a_site_whose_values_differ_too_much_claims_no_visible_loss(tmp_path: Path) -> None:
    for node in range(6):
        (tmp_path / f"n{node}.log").write_text(STREAM.format(rate=16e3 * 1.5**node, time=0.1))
    document = judged(tmp_path)
    assert document.exit_code == 3
    assert "No loss of a node would have been seen" in document.why


def test_a_folder_without_logs_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing\n")
    with pytest.raises(UsageError, match="holds no log of a known benchmark"):
        read_site(tmp_path)


PUBLIC = Path(os.environ.get("ELBOWROOM_PUBLIC_FILES", "missing")) / "allpairs"


@pytest.mark.skipif(
    not PUBLIC.is_dir(), reason="ELBOWROOM_PUBLIC_FILES names no folder with tables of all pairs"
)
@pytest.mark.parametrize(
    "hit", [lambda a, b: 9 in (a, b), lambda a, b: {a, b} == {9, 40}], ids=["node", "link"]
)
def test_public_tables_have_no_suspect_and_a_planted_one_is_found(hit: object, tmp_path: Path) -> None:
    for file in sorted(PUBLIC.iterdir()):
        assert judged(file).suspects == ()
        lines = []
        for line in file.read_text().splitlines():
            cells = line.strip().split(",")
            if len(cells) == 4 and cells[0].isdigit() and hit(int(cells[0]), int(cells[1])):  # type: ignore[operator]
                cells[3] = f"{0.93 * float(cells[3]):.6f}"
                line = ",".join(cells)
            lines.append(line)
        (tmp_path / "planted.out").write_text("\n".join([*lines, ""]))
        [one] = judged(tmp_path / "planted.out").suspects
        assert one.node == 9 or one.between == (9, 40)
