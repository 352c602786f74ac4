"""`elbowroom` and `elbowroom.api` have one list of public names."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import public_stub
import pytest

import elbowroom
from elbowroom import api
from elbowroom.errors import UsageError


def test_types_of_the_public_names_are_those_that_commands_declare() -> None:
    """Tools that check types read the file; `python tools/public_stub.py` writes it."""
    assert public_stub.FILE.read_text(encoding="utf-8") == public_stub.stub()


@pytest.mark.parametrize("name", sorted(api.PUBLIC))
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(elbowroom, name) is getattr(api, name)
    assert name in dir(api)


def test_the_names_that_most_people_need_come_first() -> None:
    assert set(dir(elbowroom)) == {"__version__", "api", *api.TASKS[api.FIRST]}
    assert len(api.TASKS[api.FIRST]) <= 16
    assert next(iter(api.TASKS)) == api.FIRST


def test_help_names_every_task_and_name() -> None:
    text = elbowroom.__doc__ or ""
    places = [text.index(f"\n{task}:\n") for task in api.TASKS]
    assert places == sorted(places)
    assert set(text.split()) >= set(api.PUBLIC)
    assert max(map(len, text.splitlines())) <= 110


def test_every_module_of_verbs_can_be_imported_first() -> None:
    """Each as the first one: modules that import one another may fail in one order only."""
    program = """
import importlib, pkgutil, sys
from elbowroom import verbs

for module in pkgutil.iter_modules(verbs.__path__):
    for loaded in [name for name in sys.modules if name.partition(".")[0] == "elbowroom"]:
        del sys.modules[loaded]
    importlib.import_module(f"elbowroom.verbs.{module.name}")
"""
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("name", ["advise", "explain"])
def test_a_package_does_not_hide_the_function_of_its_name(name: str) -> None:
    importlib.import_module(f"elbowroom.{name}")
    assert callable(getattr(elbowroom, name))


def test_predict_and_advise_answer_for_a_published_machine() -> None:
    prediction = elbowroom.predict("henri", 5, 0, 0)
    assert prediction == elbowroom.load_model("henri").predict(5, 0, 0)
    with pytest.raises(UsageError, match="job"):
        elbowroom.advise("henri", "nowhere.toml")


def test_unknown_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        elbowroom.nothing  # noqa: B018
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        api.nothing  # noqa: B018


def test_importing_elbowroom_imports_no_other_package_of_it() -> None:
    code = (
        "import sys, elbowroom; print(sorted(name for name in sys.modules if name.startswith('elbowroom')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['elbowroom', 'elbowroom.api', 'elbowroom.version']"


def test_tools_that_check_types_read_the_annotations() -> None:
    assert (Path(elbowroom.__file__).parent / "py.typed").is_file()
