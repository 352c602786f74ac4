"""From profiles of known jobs to advice: the job that is written, the model taken, what is refused."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from elbowroom import api, cli
from elbowroom.advise.job import decode
from elbowroom.errors import UsageError
from elbowroom.models.document import Calibration
from elbowroom.profile import rank_file as f
from elbowroom.profile.job import profiled_steps
from elbowroom.verbs.calibrate import MOST_FITTING, NoModel, earlier_models, model_of_machine
from elbowroom.verbs.profiled_job import choices_of_command, job_of_profile
from elbowroom.verbs.run_options import ProfiledProgram
from made_profiles import MS, Row, write_profile

QUICK = Path(__file__).resolve().parents[2] / "data" / "quick"
STEPS = 20
SIZE = 48_000_000


def profile_of(folder: Path, *, host: str = "henri", size: int = SIZE, **options: Any) -> Path:
    """Two nodes with one rank each: 20 steps of 10 ms, of which 7 compute, and then an exchange."""
    rows: list[list[Row]] = [[], []]
    for step in range(STEPS):
        for rank in (0, 1):
            begin, end = (10 * step + 7) * MS, (10 * step + 10) * MS
            both = (begin, end, size, 1 - rank, "MPI_Sendrecv")
            rows[rank] += [(*both, f.SENDRECV, f.CALL | f.BETWEEN), (*both, f.RECEIVE, f.BETWEEN)]
    return write_profile(folder, rows, (0, 1), **{"end": 200 * MS, "host": host.encode(), **options})


def on_one_node(folder: Path, rows: list[list[Row]], **options: Any) -> Path:
    return write_profile(folder, rows, (0,) * len(rows), **{"end": 200 * MS, "host": b"henri", **options})


def test_a_profile_becomes_a_job_that_advise_takes_and_advice(tmp_path: Path) -> None:
    profile, job = profile_of(tmp_path / "p"), tmp_path / "job.toml"
    found = api.diagnose(profile, model="henri", job_file=job)
    written = decode(job.read_text(), "job.toml")
    assert written.step.comm_bytes == SIZE
    assert written.step.t_comp is not None
    assert written.step.t_comp.seconds == pytest.approx(0.007)
    assert (written.now.cores, written.now.overlap) == (1, False)
    assert found.advice.sentence == api.advise("henri", job).sentence
    assert "cores" in {choice.axis for choice in found.advice.changes}
    assert (found.steps.count, found.steps.inside, found.model_origin) == (STEPS - 2, False, "given")
    assert found.trusted


def test_the_command_prints_the_advice_of_a_profile(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    profile = profile_of(tmp_path / "p")
    words = ["diagnose", "--profile", str(profile), "--model", "henri"]
    assert cli.run(words) == 0
    text = capsys.readouterr().out
    assert "18 steps by a pattern of calls of 1 rank on henri:0: one takes 10 ms" in text
    assert "Change cores" in text
    assert cli.run([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["schema"] == "elbowroom/diagnosis"


def test_the_account_has_all_of_a_step_and_the_first_cause_what_is_lost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Steps of 20 ms: 7 compute, of rank 1 14, and rank 0 waits for it in a barrier."""
    rows: list[list[Row]] = [[], []]
    for step in range(STEPS):
        for rank in (0, 1):
            begin, end = (20 * step + 7 * (1 + rank)) * MS, (20 * step + 17) * MS
            rows[rank] += [(begin, end, 0, -1, "MPI_Barrier", f.BARRIER, f.CALL)]
            both = (end, end + 3 * MS, SIZE, 1 - rank, "MPI_Sendrecv")
            rows[rank] += [(*both, f.SENDRECV, f.CALL | f.BETWEEN), (*both, f.RECEIVE, f.BETWEEN)]
    folder = write_profile(tmp_path / "p", rows, (0, 1), end=400 * MS, host=b"henri")
    found = api.diagnose(folder, out=tmp_path)
    shares = msgspec.structs.asdict(found.account)
    assert sum(shares.values()) == pytest.approx(1.0, abs=1e-3)
    assert shares["compute"] == pytest.approx((7 + 14) / 2 / 20, abs=0.02)
    assert found.step_s == pytest.approx(0.020, rel=0.01)
    cause = found.causes[0]
    assert (cause.cause, cause.ranks) == ("late-rank", (1,))
    assert cause.low <= cause.share <= cause.high
    written = json.loads((tmp_path / "diagnosis.json").read_text())
    assert (written["version"], written["model"], written["advice"]) == (2, None, None)
    assert cli.run(["diagnose", "--profile", str(folder)]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "The other ranks wait for rank 1" in text


def test_a_diagnosis_that_is_stopped_names_the_command_that_continues_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    profile = profile_of(tmp_path / "my p", host="here")
    monkeypatch.chdir(tmp_path)

    def stop(*_words: Any, **_options: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("elbowroom.verbs.calibrate.dry_run", stop)
    verify = ["--verify", "./app {cores}"]
    words = ["diagnose", "--profile", str(profile), "--cores", "2", "--budget", "40s", *verify]
    assert cli.run(words) == 1
    err = capsys.readouterr().err
    assert f"continue with: elbowroom diagnose --profile '{profile}' --budget 40s --cores 2 --verify" in err
    assert re.search(r"measuring one, at most (40|39\.\d*) s", err)


def test_a_model_is_measured_within_the_budget_and_continued_where_it_was_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, str, float]] = []

    class Stop(Exception):
        pass

    def run(plan: str, *, out: str, overrides: Any, **_: Any) -> None:
        asked.append((plan, out, overrides.budget))
        raise Stop

    def resume(folder: Path, *, budget: float, **_: Any) -> None:
        asked.append(("resume", str(folder), budget))
        raise Stop

    monkeypatch.chdir(tmp_path)
    henri = api.dry_run("quick", machine="henri")
    monkeypatch.setattr("elbowroom.verbs.calibrate.dry_run", lambda *_words, **_options: henri)
    monkeypatch.setattr("elbowroom.verbs.calibrate.FEW_CORES", 1000)
    monkeypatch.setattr("elbowroom.verbs.calibrate.run", run)
    monkeypatch.setattr("elbowroom.verbs.calibrate.resume", resume)
    with pytest.raises(Stop):
        model_of_machine(("a",), SIZE, budget=60, name="p", tell=lambda _: None)
    shutil.copytree(QUICK, tmp_path / "runs" / "p-sizes")
    manifest = tmp_path / "runs" / "p-sizes" / "manifest.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "finished": ""}))
    with pytest.raises(Stop):
        model_of_machine(("a",), SIZE, budget=60, name="p", tell=lambda _: None)
    assert [(plan, folder) for plan, folder, _ in asked] == [
        ("sizes", "runs/p-sizes"), ("resume", "runs/p-sizes")
    ]  # fmt: skip
    # Some of the time is kept for the fit, most on a busy machine, and 60 % of the rest is for the first run.
    assert all(0.6 * 60 * (1 - MOST_FITTING) - 6 < seconds <= 36 for _, _, seconds in asked)
    with pytest.raises(UsageError, match="too short to measure a model") as caught:
        model_of_machine(("a",), SIZE, budget=8, name="q", tell=lambda _: None)
    assert caught.value.hint.startswith("give at least ")


def test_a_diagnosis_is_complete_without_a_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """There is no model, and the machine is too busy to measure one that a cause needs."""

    def busy(*_words: object, **_options: object) -> None:
        raise NoModel("could not be measured: 60 s are too short", field="model")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("elbowroom.verbs.calibrate.measure_model", busy)
    profile = profile_of(tmp_path / "p")
    words = ["diagnose", "--profile", str(profile), "--cores", "2", "--job-out", "job.toml"]
    assert cli.run(words) == 0
    assert "There is no model of this machine, and no cause needs one." in capsys.readouterr().out
    assert (tmp_path / "job.toml").exists()
    monkeypatch.setattr("elbowroom.verbs.diagnosis.NEEDS_MODEL", ("computation",))
    assert cli.run([*words, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["advice"] is None
    assert 0 < document["hidden_most"] < 1
    assert document["missing"].startswith("model: could not be measured")


def test_marks_make_the_steps(tmp_path: Path) -> None:
    rows: list[list[Row]] = [[], []]
    for step in range(STEPS):
        for rank in (0, 1):
            begin = 10 * step * MS
            rows[rank].append((begin, begin + 1, 1, -1, "MPI_Pcontrol", f.MARK, f.CALL))
            for part in (4, 8):
                both = (begin + part * MS, begin + (part + 1) * MS, 1000, 1 - rank, "MPI_Sendrecv")
                rows[rank] += [(*both, f.SENDRECV, f.CALL), (*both, f.RECEIVE, 0)]
    found = profiled_steps(on_one_node(tmp_path, rows))
    assert (found.steps.recognised_by, found.steps.count, found.steps.received.mean) == ("marks", 19, 4000)


def no_steps(folder: Path) -> Path:
    """Two ranks that never send the same number of bytes twice."""
    rows: list[list[Row]] = [[], []]
    for step in range(STEPS):
        for rank in (0, 1):
            both = (10 * step * MS, (10 * step + 1) * MS, 1000 + step, 1 - rank, "MPI_Sendrecv")
            rows[rank] += [(*both, f.SENDRECV, f.CALL), (*both, f.RECEIVE, 0)]
    return on_one_node(folder, rows)


def only_barriers(folder: Path) -> Path:
    return on_one_node(
        folder,
        [[(10 * step * MS, (10 * step + 1) * MS, 0, -3, "MPI_Barrier", f.BARRIER, f.CALL)
          for step in range(STEPS)]] * 2,
    )  # fmt: skip


def nothing(folder: Path) -> Path:
    return on_one_node(folder, [[(MS, 2 * MS, 0, -1, "MPI_Comm_rank", f.OTHER, f.CALL)]] * 2)


def one_rank(folder: Path) -> Path:
    """A job of one rank, which sends itself nothing."""
    rows = [
        (10 * step * MS, (10 * step + 1) * MS, 8, -2, "MPI_Allreduce", f.COLLECTIVE, f.CALL)
        for step in range(STEPS)
    ]
    return on_one_node(folder, [rows])


def short(folder: Path) -> Path:
    """Two ranks that call a barrier once, and are done after 2 ms."""
    row = (MS, 2 * MS, 0, -3, "MPI_Barrier", f.BARRIER, f.CALL)
    return on_one_node(folder, [[row], [row]], end=2 * MS)


@pytest.mark.parametrize(
    ("made", "sentence"),
    [
        (no_steps, "No steps were recognised: no sequence of calls of rank 0 repeats"),
        (only_barriers, "18 steps by a pattern of calls"),
        (nothing, "No steps were recognised: rank 0 never communicated"),
        (one_rank, "Communication is not the problem"),
        (short, "The whole run of 2 ranks"),
    ],
)
def test_a_profile_without_steps_or_communication_has_an_account(
    tmp_path: Path, made: Any, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["diagnose", "--profile", str(made(tmp_path / "p")), "--model", "henri"]) == 0
    assert sentence in " ".join(capsys.readouterr().out.split())
    verify = ["--verify", "./app {cores}", "--model", "henri"]
    assert cli.run(["diagnose", "--profile", str(tmp_path / "p"), *verify]) == 2


def test_the_model_of_another_machine_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="another machine than the profile's: name is 'henri' in the model"):
        api.diagnose(profile_of(tmp_path / "p", host="vm"), model="henri")


def test_the_job_is_there_even_without_a_model(tmp_path: Path) -> None:
    job = tmp_path / "job.toml"
    with pytest.raises(UsageError):
        api.diagnose(profile_of(tmp_path / "p", host="vm"), model="henri", job_file=job)
    assert decode(job.read_text(), "job.toml").step.comm_bytes == SIZE


def test_a_killed_program_gives_a_labelled_partial_result(tmp_path: Path) -> None:
    found = api.diagnose(profile_of(tmp_path / "p", end=None), model="henri", exit_code=137)
    assert found.notes[0].startswith("The program ended with exit code 137")
    assert any("partial: ranks 0, 1 never called MPI_Finalize" in note for note in found.notes)


def test_only_what_the_command_can_be_run_with_may_change(tmp_path: Path) -> None:
    found = profiled_steps(profile_of(tmp_path / "p"))
    options = ProfiledProgram(verify="./app --threads {cores} --overlap {overlap}", metric="(\\S+) s")
    job = job_of_profile(found, options, api.load_model("henri")).data
    assert job["may"] == {"cores": "every", "overlap": [True, False]}
    assert job["verify"] == {"command": options.verify, "number": options.metric}


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("./app", "names no choice"),
        ("./app {progress}", "which is not a choice of a job"),
        ("./app {threads}", "names {threads}, which is not a choice"),
        ("./app {cores", "has braces that do not close"),
    ],
)
def test_a_command_that_cannot_verify_is_refused_before_the_program_runs(
    tmp_path: Path, command: str, problem: str
) -> None:
    with pytest.raises(UsageError, match=problem):
        choices_of_command(command)
    ran = tmp_path / "ran"
    assert cli.run(["diagnose", "--verify", command, "--", "touch", str(ran)]) == 2
    assert not ran.exists()


def test_more_cores_than_the_first_socket_has_are_on_both(tmp_path: Path) -> None:
    found = profiled_steps(profile_of(tmp_path / "p"))
    now = job_of_profile(found, ProfiledProgram(cores=20), api.load_model("henri")).data["now"]
    assert (now["cores"], now["cores_other"]) == (18, 2)


def test_overlap_needs_a_core_for_messages(tmp_path: Path) -> None:
    found = profiled_steps(profile_of(tmp_path / "p"), communication_threads=True)
    henri = api.load_model("henri")
    every = ProfiledProgram(cores=36, communication_threads=True)
    job = job_of_profile(found, every, henri)
    assert job.data["now"]["overlap"] is False
    assert any("no core is left for them" in sentence for sentence in job.unknown)
    less = dataclasses.replace(every, cores=17)
    assert job_of_profile(found, less, henri).data["now"]["overlap"] is True


def test_openmp_says_how_many_threads_compute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    job = job_of_profile(profiled_steps(profile_of(tmp_path / "p")), ProfiledProgram())
    assert job.data["now"]["cores"] == 4
    assert any("OMP_NUM_THREADS is 4" in sentence for sentence in job.unknown)


def stored(folder: Path, name: str, *, created: str, size: int, **changes: Any) -> Path:
    """A model file where `fit` writes it."""
    document = api.load_model("henri").document
    calibration = msgspec.structs.replace(document.calibration, origin="measured", size=size)
    assert isinstance(calibration, Calibration)
    path = folder / name / "models" / "henri.json"
    path.parent.mkdir(parents=True)
    changed = msgspec.structs.replace(document, calibration=calibration, created=created, **changes)
    api.Model(changed).save(path)
    return path


def test_the_newest_model_for_such_messages_is_taken(tmp_path: Path) -> None:
    stored(tmp_path, "old", created="2026-01-01", size=64_000_000)
    newest = stored(tmp_path, "new", created="2026-02-01", size=64_000_000)
    stored(tmp_path, "small", created="2026-03-01", size=4096)
    (tmp_path / "bad" / "models").mkdir(parents=True)
    (tmp_path / "bad" / "models" / "henri.json").write_text("{")
    found = earlier_models(("henri",), SIZE, tmp_path)
    assert found.newest is not None
    assert found.newest.path == newest
    assert found.sentence() == ""
    assert [Path(path).parts[-3] for path, _ in found.refused] == ["bad", "small"]


def test_it_is_said_why_earlier_models_are_not_taken(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        stored(tmp_path, name, created="2026-01-01", size=64_000_000)
    other = earlier_models(("vm",), SIZE, tmp_path)
    assert other.newest is None
    assert "a/models/henri.json is the model of another machine than the profile's" in other.sentence()
    assert other.sentence().endswith("; and 1 more.")
    small = earlier_models(("henri",), 4096, tmp_path).sentence()
    assert "is for messages of 64 MB, and most bytes are in messages of 4 KiB" in small
    assert earlier_models(("henri",), SIZE, tmp_path / "none").sentence() == ""


def test_several_hosts_need_a_model_that_was_measured_between_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="none is given for the hosts a1, a2") as error:
        model_of_machine(("a1", "a2"), SIZE, tell=lambda _: None)
    assert "elbowroom calibrate --hosts A,B" in error.value.hint


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "no command is given"),
        (["--profile", "p", "--", "true"], "a command and a profile are given"),
        (["--profile", "p", "--metric", "(x)"], "is only valid with --verify"),
        (["--profile", "p", "--mpi", "/opt"], "is only valid with a command"),
        (["--", "true"], "starts no MPI launcher"),
    ],
)
def test_a_command_line_that_makes_no_sense_is_refused(
    tmp_path: Path,
    words: list[str],
    sentence: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.run(["diagnose", *words]) == 2
    assert sentence in " ".join(capsys.readouterr().err.split())
    assert os.listdir(tmp_path) == []


def test_the_other_bound_is_a_computation_that_the_cores_bound(tmp_path: Path) -> None:
    found = api.diagnose(profile_of(tmp_path / "p", size=4000), model="henri")
    # 7 ms of one core on 18 cores, and a message of 4 kB.
    bound = found.core_bound
    assert bound.changes["cores"] == 18
    assert bound.total_s == pytest.approx(0.007 / 18, rel=0.01)
    assert bound.gain == pytest.approx(1 - 1 / 18, abs=0.001)
