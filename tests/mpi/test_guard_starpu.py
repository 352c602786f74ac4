"""The order of StarPU's tasks under each setting of the lever `starpu`, and programs that it leaves alone."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from elbowroom.launch import build, starpu
from traced import PATIENCE

ROOT = Path(__file__).parents[2]
SITE = "mcmcmcmccccc"
BESIDE = "ccccmmmmcccc"
OFF, PLACEBO, PREFER, SPARE, HOLD = range(5)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not starpu.installed("starpu-1.3"):
        pytest.skip("StarPU 1.3 is not installed (Debian: libstarpu-dev)")
    path = tmp_path_factory.mktemp("guarded") / "order"
    words = ["pkg-config", "--cflags", "--libs", "starpu-1.3"]
    flags = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
    folders = [f"-I{ROOT / name}" for name in ("include", "lib")]
    objects = []
    for name in ("guard", "board"):
        objects.append(path.with_name(f"{name}.o"))
        source = ROOT / "lib" / "guard" / f"{name}.cpp"
        words = ["c++", "-std=c++20", "-w", '-DELBOWROOM_VERSION="test"', *folders]
        subprocess.run([*words, "-c", "-o", objects[-1], source], check=True)
    source = Path(__file__).with_name("guard_starpu_order.c")
    subprocess.run(["cc", *folders, "-o", path, source, *objects, *flags, "-lstdc++"], check=True)
    return path


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where StarPU keeps what it measures of a machine, once for all programs."""
    return tmp_path_factory.mktemp("home")


def run(program: Path, home: Path, folder: Path, setting: int, *words: str, **more: str) -> tuple[str, str]:
    told = {
        "LD_PRELOAD": str(build.trace_libraries() / "libelbow_guard_starpu.so"),
        "ELBOW_GUARD": str(folder / "board"),
        "ELBOW_GUARD_MEMORY_BOUND": "mem*",
        "STARPU_HOME": str(home),
        "STARPU_SILENT": "1",
        "STARPU_SCHED": "eager",
    }
    env = {name: value for name, value in (os.environ | told | more).items() if value}
    done = subprocess.run(
        [program, str(setting), *words],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env=env,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip(), done.stderr


def test_memory_bound_tasks_run_behind_the_others_while_a_large_message_moves(
    program: Path, home: Path, tmp_path: Path
) -> None:
    said = {setting: run(program, home, tmp_path, setting)[0] for setting in range(5)}
    assert said[OFF] == f"{SITE} 0"
    assert said[PLACEBO] == f"{SITE} {PLACEBO}"
    for setting in (PREFER, SPARE, HOLD):
        assert said[setting] == f"{BESIDE} {setting}"


def test_of_the_tasks_that_waited_the_one_of_highest_priority_runs_first(
    program: Path, home: Path, tmp_path: Path
) -> None:
    said, _ = run(program, home, tmp_path, HOLD, "rising")
    assert said.split()[0] == BESIDE.replace("mmmm", "3210")


@pytest.mark.parametrize("policy", ["lws", "dmdas"])
def test_other_policies_are_wrapped_alike(program: Path, home: Path, tmp_path: Path, policy: str) -> None:
    said, _ = run(program, home, tmp_path, HOLD, STARPU_SCHED=policy)
    assert sorted(said) == sorted(f"{BESIDE} {HOLD}")
    assert said.index("m") > said.index("c")


def test_what_is_known_of_codelets_is_written(program: Path, home: Path, tmp_path: Path) -> None:
    run(program, home, tmp_path, OFF, ELBOW_GUARD_CODELETS=str(tmp_path))
    (file,) = tmp_path.glob("codelets-*.jsonl")
    rows = {row["codelet"]: row for row in map(json.loads, file.read_text().splitlines())}
    assert rows["memory"]["bound"] == "memory"
    assert rows["memory"]["marked"]
    assert rows["compute"]["bound"] == "unknown"


@pytest.mark.parametrize(
    ("words", "more", "sentence"),
    [
        (("own",), {"STARPU_SCHED": ""}, "the program has a scheduling policy of its own"),
        ((), {"STARPU_SCHED": "nonsense"}, "StarPU does not know the scheduling policy nonsense"),
        ((), {"ELBOW_GUARD_MEMORY_BOUND": "nothing"}, "no codelet that ran is called nothing"),
        (("again",), {}, "the program starts StarPU again while it runs"),
    ],
)
def test_a_program_that_cannot_be_guarded_runs_on_and_the_reason_is_said(
    program: Path, home: Path, tmp_path: Path, words: tuple[str, ...], more: dict[str, str], sentence: str
) -> None:
    said, warned = run(program, home, tmp_path, PREFER, *words, **more)
    assert sorted(said.split()[0]) == sorted(SITE)
    assert warned.count("elbowroom:") == 1
    assert sentence in warned


def test_the_policy_can_be_asked_for_by_name(program: Path, home: Path, tmp_path: Path) -> None:
    said, _ = run(program, home, tmp_path, HOLD, "wrapped", STARPU_SCHED="")
    assert said == f"{BESIDE} {HOLD}"
