"""Which library of linear algebra programs are built with."""

from __future__ import annotations

import pytest

from elbowroom.errors import UsageError
from elbowroom.launch import build, starpu


def test_openblas_is_taken_where_nothing_else_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ELBOWROOM_BLAS", raising=False)
    assert build.blas_option() == "-DELBOWROOM_BLAS=openblas"


def test_any_library_that_pkg_config_knows_can_be_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ELBOWROOM_BLAS", "flexiblas")
    monkeypatch.setattr(starpu, "installed", lambda name: "3.3.1" if name == "flexiblas" else "")
    assert build.blas_option() == "-DELBOWROOM_BLAS=flexiblas"


def test_a_library_that_is_not_there_is_refused_before_anything_is_built(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ELBOWROOM_BLAS", "flexiblsa")
    monkeypatch.setattr(starpu, "installed", lambda _name: "")
    with pytest.raises(UsageError, match=r"ELBOWROOM_BLAS 'flexiblsa'.*pkg-config --list-all"):
        build.blas_option()
