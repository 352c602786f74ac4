"""What a manifest says of the software that measured."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from elbowroom.launch.native import commit
from elbowroom.measure import manifest as module
from elbowroom.measure.manifest import PACKAGES, software

ROOT = Path(__file__).resolve().parents[3]


def test_every_dependency_has_its_version_or_a_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert list(PACKAGES) == [re.split(r"[ <>=]", line)[0] for line in project["dependencies"]]
    known, unknown = software()
    missing = {name.removeprefix("software.packages.") for name in unknown}
    assert set(PACKAGES) <= set(known["packages"]) | missing
    assert known["packages"]["numpy"].split(".")[0].isdigit()


def test_an_installed_elbowroom_says_why_its_commit_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "checkout_root", lambda: None)
    known, unknown = software()
    assert "commit" not in known
    assert "installed" in unknown["software.commit"]


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_a_changed_checkout_is_marked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b"]
    (tmp_path / "file").write_text("one")
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    subprocess.run([*git, "add", "file"], check=True)
    subprocess.run([*git, "commit", "-qm", "one"], check=True)
    monkeypatch.setattr(module, "checkout_root", lambda: tmp_path)
    clean = software()[0]["commit"]
    assert re.fullmatch(r"[0-9a-f]{40}", clean)
    (tmp_path / "file").write_text("two")
    commit.cache_clear()
    assert software()[0]["commit"] == f"{clean}+"


def test_a_folder_that_is_no_checkout_of_git_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(module, "checkout_root", lambda: tmp_path)
    assert "git does not report" in software()[1]["software.commit"]
