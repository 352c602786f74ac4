"""What the built libraries export, compared with the lists in tests/data/exported."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import elbowroom

LISTS = Path(__file__).parents[2] / "data" / "exported"
TREE = Path(os.environ.get("ELBOWROOM_PREDICT") or os.devnull)
LIBRARIES = sorted(path.stem for path in LISTS.glob("elbow_*.txt"))

pytestmark = [
    pytest.mark.skipif(
        not (TREE / "lib").is_dir(), reason="the native tests are not built (./elbowroom test)"
    ),
    pytest.mark.skipif(
        not all(map(shutil.which, ("nm", "readelf", "cmake"))), reason="needs nm, readelf and cmake"
    ),
]


def output(*words: str | Path) -> str:
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def built(library: str) -> Path:
    """The library, up to date."""
    output("cmake", "--build", TREE, "--target", library)
    return TREE / "lib" / library.removeprefix("elbow_") / f"lib{library}.so"


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_library_exports_what_its_list_names(library: str) -> None:
    """After an intended change, the third column of `nm -D --defined-only` is the new list."""
    lines = output("nm", "-D", "--defined-only", built(library)).splitlines()
    names = sorted(line.split()[2] for line in lines)
    assert names == (LISTS / f"{library}.txt").read_text(encoding="ascii").split()


@pytest.mark.parametrize("library", [name for name in LIBRARIES if name != "elbow_nic"])
def test_a_librarys_soname_has_the_minor_version_before_1_0(library: str) -> None:
    major, minor = elbowroom.__version__.split(".")[:2]
    version = f"{major}.{minor}" if major == "0" else major
    said = output("readelf", "-d", built(library))
    assert re.findall(r"soname: \[(.*)\]", said) == [f"lib{library}.so.{version}"]
