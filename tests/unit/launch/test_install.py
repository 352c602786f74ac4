"""Packages that a build lacks: installed by ./elbowroom for root, else named."""

from __future__ import annotations

from pathlib import Path

import pytest

from elbowroom.errors import MachineError
from elbowroom.launch import native

SCRIPT = r"""#!/bin/sh
echo "$@" >>"$ELBOWROOM_TEST_LOG"
printf '#!/bin/sh\necho c++ 1\n' >"$0-c++"
chmod 755 "$0-c++"
"""


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    script = tmp_path / "installer"
    script.write_text(SCRIPT)
    script.chmod(0o755)
    monkeypatch.setenv(native.INSTALLER, str(script))
    monkeypatch.setenv("ELBOWROOM_TEST_LOG", str(tmp_path / "log"))
    monkeypatch.setenv("CXX", f"{script}-c++")
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(native, "missing_packages", lambda names: names.replace("cmake", "").strip())
    return tmp_path / "log"


def test_root_gets_a_missing_compiler_when_something_is_compiled(log: Path) -> None:
    assert native.compiler_identity("probe", "g++ cmake").endswith("c++ 1")
    assert log.read_text() == "install g++\n"


def test_nothing_is_installed_in_a_dry_run(log: Path) -> None:
    with native.dry_run():
        assert "is not installed" in native.compiler_identity("probe", "g++ cmake")
    assert not log.exists()


@pytest.mark.parametrize("why", ["no root", "no ./elbowroom"])
def test_who_cannot_install_learns_the_command(log: Path, monkeypatch: pytest.MonkeyPatch, why: str) -> None:
    if why == "no root":
        monkeypatch.setattr("os.geteuid", lambda: 1000)
    else:
        monkeypatch.delenv(native.INSTALLER)
    with pytest.raises(MachineError, match="no C\\+\\+ compiler") as error:
        native.compiler_identity("probe", "g++ cmake")
    assert error.value.hint == "on Debian or Ubuntu, as root: apt-get install g++"
    assert not log.exists()
