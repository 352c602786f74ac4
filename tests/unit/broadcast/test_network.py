"""The network that measured broadcasts tell, and what is tuned for it."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

import elbowroom
from elbowroom import cli
from elbowroom.broadcast.network import MeasuredBroadcast, MeasuredTime, Network, fit_network
from elbowroom.errors import ElbowroomError, UsageError
from elbowroom.launch import build, executables
from elbowroom.launch.executables import BroadcastCase

PLANTED = Network(latency=1.3e-6, overhead=0.6e-6, bandwidth=7e9)


@pytest.fixture(scope="module")
def model() -> None:
    try:
        build.broadcast_costs()
    except ElbowroomError as error:
        pytest.skip(error.sentence())


def measured(network: Network, noise: float = 0.0) -> list[MeasuredBroadcast]:
    """Rows of flat trees whose times are those that the cost model predicts, with relative noise."""
    cases = [
        BroadcastCase(size=size, recipients=recipients, tree="flat")
        for size in (4, 8, 16, 32, 64)
        for recipients in (1, 3, 7, 15, 31)
    ]
    cases += [BroadcastCase(size=size << 20, recipients=1, tree="flat") for size in range(1, 9)]
    draw = random.Random(1)
    return [
        MeasuredBroadcast(
            tree="flat",
            ranks=case.recipients + 1,
            size=case.size,
            time=MeasuredTime(median=predicted.received * 1e6 * draw.gauss(1, noise)),
        )
        for case, predicted in zip(cases, executables.predict_broadcasts(network, cases), strict=True)
    ]


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize("noise", [0.0, 0.03])
def test_a_fit_finds_the_network_that_made_the_times(noise: float) -> None:
    found = fit_network(measured(PLANTED, noise))
    for name in ("latency", "overhead", "bandwidth"):
        assert getattr(found, name) == pytest.approx(getattr(PLANTED, name), rel=0.05)


def row(ranks: int, size: int, median: float) -> MeasuredBroadcast:
    return MeasuredBroadcast(tree="flat", ranks=ranks, size=size, time=MeasuredTime(median=median))


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [row(2, 4, 3.0), row(9, 4, 7.0)],
        [row(2, 4, 3.0), row(2, 8, 3.0), row(2, 1 << 20, 200.0)],
    ],
)
def test_rows_that_do_not_tell_all_parameters_are_refused(rows: list[MeasuredBroadcast]) -> None:
    with pytest.raises(UsageError, match="do not determine latency, overhead and bandwidth"):
        fit_network(rows)


def test_a_parameter_that_would_be_negative_is_0() -> None:
    faster_with_more = [row(2, 4, 3.0), row(9, 4, 2.0), row(33, 4, 1.5), row(2, 1 << 20, 200.0)]
    assert fit_network(faster_with_more).overhead == 0


@pytest.mark.usefixtures("model")
def test_a_tuned_network_is_read_again(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "network.json"
    words = ["broadcast", "tune", "--sizes", "4,1MiB", "--recipients", "1,38", "-o", str(file)]
    assert cli.run([*words, "--bandwidth", "7GB/s", "--overhead", "1us", "--json"]) == 0
    printed = json.loads(capfd.readouterr().out)
    assert json.loads(file.read_text()) == printed
    assert elbowroom.load_network(file) == Network(bandwidth=7e9, latency=2e-6, overhead=1e-6)
    assert [(item["size"], item["recipients"]) for item in printed["table"]] == [
        (4, 1), (4, 38), (2**20, 1), (2**20, 38)
    ]  # fmt: skip
    assert printed["table"][3]["segment"] > 0
    assert cli.run(words) == 0
    assert "Times are predicted" in " ".join(capfd.readouterr().out.split())


@pytest.mark.usefixtures("model")
def test_the_tuned_window_is_one_of_the_least_time() -> None:
    (tuned,) = elbowroom.tune_broadcasts(PLANTED, [32 << 20], [3]).table
    cases = [
        BroadcastCase(
            size=tuned.size, recipients=3, tree=tuned.tree, segment=tuned.segment, window=window << 10
        )
        for window in (64, 128, 256, 512, 1024)
    ]
    times = [found.received * 1e6 for found in executables.predict_broadcasts(PLANTED, cases)]
    assert tuned.time_us <= min(times) / 0.98


@pytest.mark.usefixtures("model")
def test_rows_of_the_benchmark_are_fitted_by_the_command(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    rows = [
        {"tree": "flat", "ranks": one.ranks, "size": one.size, "beside": {},
         "time": {"median": one.time.median, "low": 0, "high": 0}}
        for one in measured(PLANTED)
    ]  # fmt: skip
    (tmp_path / "bench.json").write_text(json.dumps(rows))
    words = [
        "broadcast",
        "tune",
        "--sizes",
        "4",
        "--recipients",
        "3",
        "--bench",
        str(tmp_path / "bench.json"),
    ]
    assert cli.run([*words, "--json"]) == 0
    network = json.loads(capfd.readouterr().out)["network"]
    assert network["bandwidth"] == pytest.approx(7e9, rel=0.05)
    assert cli.run([*words, "--latency", "1us"]) == 2
    assert "latency: cannot be combined with --bench" in capfd.readouterr().err
