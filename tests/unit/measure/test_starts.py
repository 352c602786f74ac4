"""A run that starts its program several times: what is started, stored and resumed, and what results say."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from elbowroom import api
from elbowroom.errors import UsageError
from elbowroom.experiments.plans import Overrides
from elbowroom.launch.virtual import load
from elbowroom.store.folder import RunFolder
from elbowroom.store.journal import HEADER
from elbowroom.virtual.definition import encode

BETWEEN = 0.04


def quiet(_sentence: str) -> None:
    """Nobody listens."""


@pytest.fixture
def jumpy(tmp_path: Path) -> str:
    """A machine whose values vary by 4 % from start to start."""
    file = tmp_path / "jumpy.toml"
    definition = msgspec.structs.replace(load("henri").definition, name="jumpy", between_starts=BETWEEN)
    file.write_text(encode(definition), encoding="utf-8")
    return str(file)


def overrides(starts: int = 6, repeat: int = 18, n: str = "1,8,16,35") -> Overrides:
    return Overrides(starts=starts, repeat=repeat, settings={"n": n})


def measured(out: Path, machine: str, changes: Overrides, **options: object) -> api.Run:
    return api.run(
        "cores", overrides=changes, machine=machine, out=str(out), report=False, tell=quiet, **options
    )


def starts_by_repetition(run: Path) -> dict[int, set[int]]:
    found: dict[int, set[int]] = {}
    for entry in RunFolder.open(run).entries():
        if not entry.closing:
            found.setdefault(entry.repetition, set()).add(entry.record["start"])
    return found


def test_each_start_measures_its_block_of_repetitions(tmp_path: Path) -> None:
    run = measured(tmp_path / "r", "henri", overrides(starts=3, repeat=7, n="1"))
    assert starts_by_repetition(run.path) == {
        0: {0}, 1: {0}, 2: {0}, 3: {1}, 4: {1}, 5: {2}, 6: {2},
    }  # fmt: skip


@pytest.mark.parametrize("where", [{"launcher": "local"}, {"hosts": ("localhost",)}])
def test_a_live_probe_is_started_as_often_as_the_plan_says(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: dict[str, object]
) -> None:
    log = tmp_path / "pids"
    monkeypatch.setenv("FAKE_PIDS", str(log))
    run = api.run(
        "cores", overrides=Overrides(starts=3, repeat=6, sizes=(64_000_000,)), mpi=str(site),
        out=str(tmp_path / "r"), report=False, tell=quiet, **where,
    )  # fmt: skip
    assert set.union(*starts_by_repetition(run.path).values()) == {0, 1, 2}
    assert len(set(log.read_text().split())) == 3


def test_a_planted_variation_between_starts_is_recovered(tmp_path: Path, jumpy: str) -> None:
    run = measured(tmp_path / "r", jumpy, overrides())
    values = next(finding.values for finding in run.findings if finding.key == "starts")
    assert values["between"] == pytest.approx(BETWEEN, rel=0.25)
    assert values["within"] == pytest.approx(0.01 / 2**0.5, rel=0.2)
    assert values["share"] > 0.9
    plain = run.show()["points"][0]["comp"]["alone"]["variation"]
    assert plain["starts"] == 6
    assert plain["low"] <= plain["share"] <= plain["high"]
    assert any("Variation between starts" in table.title for table in run.tables)


def test_intervals_of_a_machine_that_varies_between_starts_hold_the_truth(tmp_path: Path, jumpy: str) -> None:
    run = measured(tmp_path / "r", jumpy, overrides())
    exact = measured(tmp_path / "exact", "henri", Overrides(repeat=5, settings={"n": "1,8,16,35"}), noise=0.0)
    truths = {point.id: point for point in exact.points()}
    hits = [
        kept.low <= truth.value <= kept.high
        for point in run.points()
        for kept, truth in (
            (point.comp.kept, truths[point.id].comp.kept),
            (point.comm.kept, truths[point.id].comm.kept),
        )
    ]
    assert sum(hits) / len(hits) > 0.8
    once = measured(tmp_path / "once", jumpy, Overrides(repeat=18, settings={"n": "1,8,16,35"}))
    wrong = [
        kept.low <= truth.value <= kept.high
        for point in once.points()
        for kept, truth in (
            (point.comp.kept, truths[point.id].comp.kept),
            (point.comm.kept, truths[point.id].comm.kept),
        )
    ]
    assert sum(wrong) < sum(hits)


def test_a_machine_alike_in_all_starts_has_nearly_no_share_between_them(tmp_path: Path) -> None:
    run = measured(tmp_path / "r", "henri", overrides())
    values = next(finding.values for finding in run.findings if finding.key == "starts")
    assert values["share"] < 0.15


def test_a_run_that_was_stopped_resumes_in_a_start_of_its_own(tmp_path: Path, jumpy: str) -> None:
    run = measured(tmp_path / "r", jumpy, overrides(starts=2, repeat=6, n="1"))
    lines = (run.path / "samples.jsonl").read_bytes().splitlines(keepends=True)
    (run.path / "samples.jsonl").write_bytes(b"".join(lines[: 1 + 3 * 5 + 1]))
    api.resume(run.path, report=False, tell=quiet)
    assert sorted(set.union(*starts_by_repetition(run.path).values())) == [0, 1, 2]
    assert len(RunFolder.open(run.path).entries()) == len(lines) - 1


def test_a_replayed_run_has_the_starts_of_the_recorded_one(tmp_path: Path, jumpy: str) -> None:
    run = measured(tmp_path / "r", jumpy, overrides(starts=3, repeat=6, n="1"))
    again = api.run(
        "cores", overrides=overrides(starts=3, repeat=6, n="1"), launcher=f"replay:{run.path}",
        out=str(tmp_path / "again"), report=False, tell=quiet,
    )  # fmt: skip
    assert starts_by_repetition(again.path) == starts_by_repetition(run.path)
    assert [point.comm.kept for point in again.points()] == [point.comm.kept for point in run.points()]


def test_a_journal_without_starts_is_read_as_of_one(tmp_path: Path) -> None:
    run = measured(tmp_path / "r", "henri", Overrides(repeat=5, settings={"n": "1"}))
    before = [point.comm for point in run.points()]
    entries = run._folder.entries()
    for entry in entries:
        del entry.record["start"]
    path = run.path / "samples.jsonl"
    path.write_bytes(HEADER + b"".join(msgspec.json.encode(entry) + b"\n" for entry in entries))
    assert [point.comm for point in api.open(run.path).points()] == before


def test_two_starts_of_a_run_compare_by_start(tmp_path: Path, jumpy: str) -> None:
    first, second = (
        measured(tmp_path / name, jumpy, overrides(starts=6, repeat=12, n="8"), seed=seed)
        for name, seed in (("a", 1), ("b", 2))
    )
    assert not [change for change in api.compare(first, second) if change.significant]


def test_more_starts_than_repetitions_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="more than there are repetitions") as caught:
        measured(tmp_path / "r", "henri", overrides(starts=5, repeat=4))
    assert caught.value.field == "starts"


def test_starts_within_a_budget_are_refused(tmp_path: Path) -> None:
    changes = Overrides(starts=2, budget=60.0)
    with pytest.raises(UsageError, match="budget"):
        api.run("quick", overrides=changes, machine="henri", out=str(tmp_path / "r"), tell=quiet)
