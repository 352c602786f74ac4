"""The C library of lib/predict for tests: built once for its sources and kept, called through ctypes.

ELBOWROOM_PREDICT names a build folder, of elbowroom or of the library alone, that has it already.
"""

from __future__ import annotations

import ctypes
import fcntl
import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from elbowroom.launch import build
from elbowroom.model.curves import STREAMS

ROOT = Path(__file__).resolve().parents[1]


class Interval(ctypes.Structure):
    _fields_ = [(name, ctypes.c_double) for name in ("value", "low", "high")]


class Answer(ctypes.Structure):
    _fields_ = [*((name, Interval) for name in STREAMS), ("flags", ctypes.c_uint)]


FLAGS = {"extrapolated": 1, "virtual": 2, "repaired": 4, "interval: sample placements only": 8}


def tree() -> Path:
    """The build folder."""
    given = Path(os.environ.get("ELBOWROOM_PREDICT") or os.devnull)
    if (given / "build.ninja").exists():
        return given
    return build.cache_folder().parent / f"predict-{_key()}"


def built(target: str, name: str = "") -> Path:
    """The file that a target makes (`name` where it is another), up to date."""
    folder = tree()
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "predict.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "build.ninja").exists():
            _run(["cmake", "-S", str(ROOT / "lib" / "predict"), "-B", str(folder), "-G", "Ninja"])
        _run(["cmake", "--build", str(folder), "--target", target])
    return next(path for path in folder.rglob(name or target) if path.is_file())


def missing() -> str:
    """The first tool that building needs and that is not there; empty when all are."""
    needed = ("cmake", "ninja", os.environ.get("CXX", "c++"), os.environ.get("CC", "cc"))
    return next((tool for tool in needed if not shutil.which(tool)), "")


def load() -> ctypes.CDLL:
    """The library with its functions declared."""
    library = ctypes.CDLL(str(built("elbow_predict", "libelbow_predict.so")), use_errno=True)
    library.elbow_predict_load.restype = ctypes.c_void_p
    library.elbow_predict_load.argtypes = [ctypes.c_char_p, ctypes.c_char_p]
    library.elbow_predict_at_size.restype = ctypes.c_void_p
    library.elbow_predict_at_size.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    library.elbow_predict_free.argtypes = [ctypes.c_void_p]
    library.elbow_predict.argtypes = [ctypes.c_void_p, *[ctypes.c_int] * 4, ctypes.POINTER(Answer)]
    library.elbow_predict_error.restype = ctypes.c_char_p
    return library


def _key() -> str:
    digest = hashlib.sha256(build.compiler_identity().encode())
    for file in sorted([*(ROOT / "lib" / "predict").iterdir(), ROOT / "include" / "elbowroom" / "predict.h"]):
        digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stdout[-4000:] + done.stderr[-4000:])
