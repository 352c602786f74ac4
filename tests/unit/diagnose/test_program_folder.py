"""What a program reads and writes beside its messages."""

from __future__ import annotations

from pathlib import Path

import pytest

from elbowroom.diagnose import program_folder
from elbowroom.diagnose.program_folder import before_first_run, check_copied, copied, written_files
from elbowroom.errors import UsageError


def test_files_that_a_program_writes_are_listed_without_ours(tmp_path: Path) -> None:
    (tmp_path / "input").write_text("1")
    (tmp_path / "old").write_text("1")
    before = before_first_run(tmp_path)
    assert written_files(before) == ()
    (tmp_path / "old").write_text("22")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "new").write_text("1")
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "profile").write_text("1")
    (tmp_path / "input").unlink()
    assert written_files(before, [tmp_path / "runs"]) == ("deep/new", "input", "old")


def test_a_copy_has_all_but_our_folders_and_is_removed(tmp_path: Path) -> None:
    (tmp_path / "input").write_text("1")
    (tmp_path / "runs").mkdir()
    with copied(tmp_path, [tmp_path / "runs"]) as copy:
        assert [path.name for path in copy.iterdir()] == ["input"]
        (copy / "output").write_text("1")
    assert not copy.exists()
    assert not (tmp_path / "output").exists()


def test_a_large_folder_is_not_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "input").write_text("12345")
    check_copied(tmp_path)
    monkeypatch.setattr(program_folder, "MOST_COPIED", 4)
    with pytest.raises(UsageError, match="too much to copy"):
        check_copied(tmp_path)
