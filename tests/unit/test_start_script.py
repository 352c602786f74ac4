"""./elbowroom, in a checkout of its own with stand-ins for Python, pip and apt: what it sets up, and when."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

PYTHON = r"""#!/bin/sh
# Stands for Python, of the system and of the virtual environment.
case "$1 ${2-}" in
"-c "*pytest*) exit ${FAKE_PYTEST:-0} ;;
"-c "*) exit 0 ;;
"-m venv")
  mkdir -p "$3/bin"
  cp "$0" "$3/bin/python"
  for tool in ruff mypy; do printf '#!/bin/sh\n' >"$3/bin/$tool"; chmod 755 "$3/bin/$tool"; done
  echo venv >>"$FAKE_LOG"
  ;;
"-m elbowroom") shift 2; printf 'elbowroom'; printf ' [%s]' "$@"; echo ;;
"-m pytest") echo "pytest in $(pwd)"; exit ${FAKE_TESTS:-0} ;;
"- "*)
  cat >/dev/null
  echo "pip $3" >>"$FAKE_LOG"
  sleep "${FAKE_SLEEP:-0}"
  if [ "$3" = . ]; then exit ${FAKE_PIP:-0}; else exit ${FAKE_TEST_PIP:-0}; fi
  ;;
*) exit 0 ;;
esac
"""
STAND_INS = {
    "python3.13": PYTHON,
    # Of the packages for tests some are missing; all others are installed.
    "dpkg-query": "#!/bin/sh\nfor one; do :; done\n"
    'case " ${FAKE_MISSING-} " in *" $one "*) exit 1 ;; esac\nprintf "install ok installed"\n',
    "dpkg": "#!/bin/sh\nexit 0\n",
    "apt-get": '#!/bin/sh\necho "apt-get $*" >>"$FAKE_LOG"\necho "no network"\nexit ${FAKE_APT:-0}\n',
    "apt-cache": "#!/bin/sh\nexit 0\n",
    "id": "#!/bin/sh\necho ${FAKE_UID:-0}\n",
    "cmake": "#!/bin/sh\nexit 0\n",
    "ctest": "#!/bin/sh\nexit ${FAKE_CTEST:-0}\n",
    "clang-format": "#!/bin/sh\nexit 0\n",
    "shellcheck": "#!/bin/sh\nexit 0\n",
}


class Checkout:
    """A checkout with the script alone, and a PATH of stand-ins."""

    def __init__(self, folder: Path, name: str = "check out") -> None:
        self.root = folder / name
        self.root.mkdir()
        self.log = folder / "log"
        shutil.copy(ROOT / "elbowroom", self.root)
        (self.root / "pyproject.toml").write_text("[project]\n")
        for part in ("core", "lib", "apps", "include"):
            (self.root / part).mkdir()
        self.bin = folder / "bin"
        self.bin.mkdir()
        for tool, text in STAND_INS.items():
            (self.bin / tool).write_text(text)
            (self.bin / tool).chmod(0o755)
        self.env = {"PATH": f"{self.bin}:/usr/bin:/bin", "FAKE_LOG": str(self.log), "HOME": str(folder)}

    def start(
        self, *words: str, script: str | None = None, cwd: Path | None = None, **env: str
    ) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["sh", script or str(self.root / "elbowroom"), *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=cwd or self.root.parent,
            env={**self.env, **env},
        )

    def run(self, *words: str, **options: object) -> tuple[int, str, str]:
        process = self.start(*words, **options)  # type: ignore[arg-type]
        out, err = process.communicate(timeout=60)
        return process.returncode, out, err

    def logged(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


def test_words_reach_the_program_as_they_are_from_a_path_with_blanks(checkout: Checkout) -> None:
    code, out, err = checkout.run("show", "a run", "*", "")
    assert (code, out) == (0, "elbowroom [show] [a run] [*] []\n"), err
    assert checkout.logged() == ["venv", "pip ."]


def test_a_second_start_sets_nothing_up(checkout: Checkout) -> None:
    checkout.run("plans")
    before = checkout.logged()
    assert checkout.run("plans")[2] == ""
    assert checkout.logged() == before


def test_two_first_starts_at_once_set_up_once(checkout: Checkout) -> None:
    if shutil.which("flock") is None:
        pytest.skip("flock is not installed (util-linux)")
    both = [checkout.start("plans", FAKE_SLEEP="0.5") for _ in range(2)]
    ended = [process.communicate(timeout=60) for process in both]
    assert [process.returncode for process in both] == [0, 0], ended
    assert [out for out, _ in ended] == ["elbowroom [plans]\n"] * 2
    assert checkout.logged() == ["venv", "pip ."]
    assert "waiting for another set-up" in "".join(err for _, err in ended)


def test_a_set_up_that_failed_is_done_again_at_the_next_start(checkout: Checkout) -> None:
    code, _, err = checkout.run("plans", FAKE_PIP="1")
    assert code == 1
    assert "the Python packages are needed; run it once with a network" in err
    code, out, _ = checkout.run("plans")
    assert (code, out) == (0, "elbowroom [plans]\n")


@pytest.mark.parametrize("how", ["relative", "absolute", "of a link"])
def test_a_symbolic_link_starts_the_checkout_it_leads_to(
    checkout: Checkout, tmp_path: Path, how: str
) -> None:
    link = tmp_path / "elbow"
    link.symlink_to(checkout.root / "elbowroom" if how != "relative" else Path("check out/elbowroom"))
    if how == "of a link":
        (tmp_path / "second").symlink_to("elbow")
        link = tmp_path / "second"
    code, out, err = checkout.run("plans", script=str(link))
    assert (code, out) == (0, "elbowroom [plans]\n"), err
    assert (checkout.root / ".elbowroom").is_dir()
    assert not (tmp_path / ".elbowroom").exists()


def test_cdpath_does_not_lead_elsewhere(checkout: Checkout, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere" / "check out"
    elsewhere.mkdir(parents=True)
    code, out, err = checkout.run("plans", script="check out/elbowroom", CDPATH=str(elsewhere.parent))
    assert (code, out) == (0, "elbowroom [plans]\n"), err
    assert list(elsewhere.iterdir()) == []


def lock(checkout: Checkout) -> None:
    """As for a user who may not write the checkout, also where the tests run as root."""
    (checkout.root / ".elbowroom").write_text("no folder")


def kept(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("elbowroom/*/*.stamp"))


def test_what_a_user_sets_up_who_may_not_write_the_checkout_is_in_the_users_cache(checkout: Checkout) -> None:
    lock(checkout)
    code, out, err = checkout.run("plans", "a b")
    assert (code, out) == (0, "elbowroom [plans] [a b]\n"), err
    assert "cannot be used by you: what is set up is kept in" in err
    assert kept(checkout.root.parent / ".cache") == ["setup.stamp"]
    assert checkout.run("plans")[1:] == ("elbowroom [plans]\n", "")


def test_a_cache_named_by_the_user_is_used(checkout: Checkout, tmp_path: Path) -> None:
    lock(checkout)
    assert checkout.run("plans", XDG_CACHE_HOME=str(tmp_path / "named"))[0] == 0
    assert kept(tmp_path / "named") == ["setup.stamp"]


@pytest.mark.parametrize("shell", ["sh", "dash", "bash", "busybox sh"])
def test_without_a_place_to_write_to_a_sentence_says_what_to_do(
    checkout: Checkout, tmp_path: Path, shell: str
) -> None:
    if shutil.which(shell.split()[0]) is None:
        pytest.skip(f"{shell} is not installed")
    lock(checkout)
    (tmp_path / "file").write_text("")
    for cache in ({"HOME": str(tmp_path / "file")}, {"HOME": ""}, {"XDG_CACHE_HOME": "/dev/full/cache"}):
        done = subprocess.run(
            [*shell.split(), str(checkout.root / "elbowroom"), "plans"],
            capture_output=True,
            text=True,
            env={**checkout.env, **cache},
        )
        assert done.returncode == 1
        assert done.stderr.startswith("elbowroom: "), done.stderr
        assert done.stderr.count("\n") == 1
        assert "set XDG_CACHE_HOME to a folder that" in done.stderr


def test_a_checkout_that_another_user_has_set_up_is_used_as_it_is() -> None:
    user = [] if os.getuid() else ["setpriv", "--reuid=65534", "--clear-groups"]
    if user and shutil.which("setpriv") is None:
        pytest.skip("as root, setpriv is needed to be another user")
    # Other users cannot enter the temporary folders of pytest.
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        checkout = Checkout(folder)
        checkout.run("plans")
        before = checkout.logged()
        (checkout.root / ".elbowroom").chmod(0o555)
        done = subprocess.run(
            [*user, "sh", str(checkout.root / "elbowroom"), "plans"],
            capture_output=True,
            text=True,
            env={**checkout.env, "HOME": "/nowhere"},
        )
        (checkout.root / ".elbowroom").chmod(0o755)
        assert (done.returncode, done.stdout, done.stderr) == (0, "elbowroom [plans]\n", "")
        assert checkout.logged() == before


def test_a_set_up_that_takes_long_says_how_far_it_is(checkout: Checkout) -> None:
    err = checkout.run("plans", FAKE_SLEEP="2.5")[2]
    assert "  2 s" in err
    assert "  4 s" not in err


def test_a_command_that_compiles_nothing_needs_no_compiler(checkout: Checkout) -> None:
    code, _, err = checkout.run("plans", FAKE_MISSING="g++ cmake libsimgrid-dev")
    assert code == 0, err
    assert "apt-get" not in err
    assert checkout.logged() == ["venv", "pip ."]


def test_packages_are_installed_by_name_or_all_that_commands_need(checkout: Checkout) -> None:
    assert checkout.run("install", "cmake", "g++", FAKE_MISSING="g++ libsimgrid-dev valgrind")[0] == 0
    assert checkout.logged()[-1].endswith("--no-install-recommends g++")
    assert checkout.run("install", FAKE_MISSING="g++ libsimgrid-dev valgrind")[0] == 0
    assert checkout.logged()[-1].endswith("--no-install-recommends g++ libsimgrid-dev")
    assert "venv" not in checkout.logged()


def test_who_cannot_install_packages_learns_the_command(checkout: Checkout) -> None:
    code, _, err = checkout.run("install", "g++", FAKE_UID="1000", FAKE_MISSING="g++")
    assert (code, err) == (
        1,
        "elbowroom: packages are missing; as root: apt-get install --no-install-recommends g++\n",
    )


def test_tests_run_as_root_without_a_network_and_say_what_is_skipped(checkout: Checkout) -> None:
    code, out, err = checkout.run("test", FAKE_MISSING="valgrind gfortran", FAKE_APT="100", FAKE_TEST_PIP="1")
    assert code == 0, err
    assert out == f"pytest in {checkout.root}\n"
    assert (
        "some tests will be skipped; as root: apt-get install --no-install-recommends valgrind gfortran"
        in err
    )
    assert "the tests go on with the Python packages that are there" in err
    # With a network, the next start installs what is missing.
    checkout.run("test", FAKE_MISSING="valgrind gfortran")
    assert [line for line in checkout.logged() if "install" in line][-1].endswith("valgrind gfortran")


def test_tests_do_not_run_without_pytest(checkout: Checkout) -> None:
    code, out, err = checkout.run("test", FAKE_TEST_PIP="1", FAKE_PYTEST="1")
    assert (code, out) == (1, "")
    assert err.endswith("elbowroom: tests need pytest; run ./elbowroom test once with a network\n")


def test_a_user_who_cannot_install_is_told_once_what_is_skipped(checkout: Checkout) -> None:
    words = {"FAKE_UID": "1000", "FAKE_MISSING": "valgrind"}
    assert "some tests will be skipped" in checkout.run("test", **words)[2]
    assert "skipped" not in checkout.run("test", **words)[2]
    assert not [line for line in checkout.logged() if line.startswith("apt-get")]


def test_nothing_is_asked_of_a_network_after_the_set_up(checkout: Checkout) -> None:
    checkout.run("test", FAKE_MISSING="valgrind")
    before = checkout.logged()
    assert checkout.run("test", FAKE_MISSING="valgrind")[0] == 0
    assert checkout.logged() == before


def test_the_exit_code_is_that_of_the_tests(checkout: Checkout) -> None:
    assert checkout.run("test", FAKE_TESTS="1")[0] == 1
    assert checkout.run("test")[0] == 0


def test_native_tests_that_fail_beside_the_python_tests_fail_the_whole(checkout: Checkout) -> None:
    code, out, err = checkout.run("test", FAKE_CTEST="1")
    assert (code, out) == (1, f"pytest in {checkout.root}\n")
    logs = checkout.root / ".elbowroom"
    assert f"lint or native tests failed: {logs}/lint.log, {logs}/ctest.log" in err


def test_the_scripts_pass_shellcheck() -> None:
    if shutil.which("shellcheck") is None:
        pytest.skip("shellcheck is not installed")
    scripts = ["elbowroom", ".ci/run", "tests/bootstrap/debian12.sh"]
    done = subprocess.run(
        ["shellcheck", "-x", *scripts], cwd=ROOT, capture_output=True, text=True, env={**os.environ}
    )
    assert done.returncode == 0, done.stdout
