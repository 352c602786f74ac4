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
from typing import Any

import numpy as np

from elbowroom.launch import native
from elbowroom.models.curves import STREAMS, Situation
from elbowroom.models.flow.law import NAMES
from elbowroom.models.flow.model import UNKNOWN
from elbowroom.models.flow.part import Discrepancies
from elbowroom.models.gpu.case import DeviceCase
from elbowroom.models.load import Load

ROOT = Path(__file__).resolve().parents[1]

SIDES = Discrepancies(
    local=(0.01, 0.0, 0.03, 0.02), remote=(0.02, 0.01, 0.0, 0.05), both=(0.1, 0.0, 0.2, 0.04)
)
"""As no fit would have them: each side is told from the others."""


class Interval(ctypes.Structure):
    _fields_ = [(name, ctypes.c_double) for name in ("value", "low", "high")]


class Sized(ctypes.Structure):
    """A structure that says how large it is."""

    def __init__(self, **fields: Any) -> None:
        super().__init__(size=ctypes.sizeof(self), **fields)


class Answer(Sized):
    _fields_ = [
        ("size", ctypes.c_size_t),
        *((name, Interval) for name in STREAMS),
        ("flags", ctypes.c_uint),
    ]


class Group(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_int) for name in ("socket", "node", "count")),
        ("intensity", ctypes.c_double),
    ]


class Messages(Sized):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("node", ctypes.c_int),
        ("direction", ctypes.c_int),
        ("bytes", ctypes.c_size_t),
        ("threads", ctypes.c_int),
    ]


class Copy(ctypes.Structure):
    _fields_ = [("node", ctypes.c_int), ("demand", ctypes.c_double)]


class LoadArgument(Sized):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("groups", ctypes.POINTER(Group)),
        ("group_count", ctypes.c_size_t),
        ("messages", ctypes.POINTER(Messages)),
        ("copies", ctypes.POINTER(Copy)),
        ("copy_count", ctypes.c_size_t),
    ]


class LoadAnswer(Sized):
    _fields_ = [
        ("size", ctypes.c_size_t),
        *((name, Interval) for name in STREAMS),
        ("flags", ctypes.c_uint),
        ("groups", ctypes.POINTER(Interval)),
        ("copies", ctypes.POINTER(Interval)),
    ]


class GpuCase(Sized):
    _fields_ = [
        ("size", ctypes.c_size_t),
        *((name, ctypes.c_int) for name in ("victim", "mover", "direction", "sms", "node", "victim_first")),
        ("pace", ctypes.c_double),
        ("shape", ctypes.c_int * 3),
    ]


GPU_RATES = ("kept", "rate", "mover_alone", "mover_together", "mover_kept")


class GpuAnswer(Sized):
    _fields_ = [
        ("size", ctypes.c_size_t),
        *((name, Interval) for name in GPU_RATES),
        ("flags", ctypes.c_uint),
    ]


VICTIMS = ("gemm", "triad", "chain")
MOVERS = ("copy", "sm_copy", "sm_idle", "sm_target")
MOVES = ("", "h2d", "d2h", "both", "d2d", "hbm", "host")
GPU_FLAGS = {"extrapolated": 1, "virtual": 2, "measured": 512, "shape not measured": 2048}


DIRECTIONS = ("receive", "send", "both")

FLAGS = {
    "extrapolated": 1,
    "virtual": 2,
    "repaired": 4,
    "interval: sample placements only": 8,
    UNKNOWN["send"]: 16,
    UNKNOWN["both"]: 32,
    UNKNOWN["threads"]: 64,
    UNKNOWN["copies"]: 128,
    UNKNOWN["nodes"]: 256,
}


class Loaded:
    """A model in the library."""

    def __init__(self, library: Any, path: Path, model: str | None = None, size: int | None = None) -> None:
        self.library = library
        self.handle = library.elbow_predict_model_load(str(path).encode(), model.encode() if model else None)
        assert self.handle, library.elbow_predict_error().decode()
        if size is not None:
            loaded, self.handle = self.handle, library.elbow_predict_model_at_size(self.handle, size)
            library.elbow_predict_model_free(loaded)
            assert self.handle, library.elbow_predict_error().decode()

    def __enter__(self) -> Loaded:
        return self

    def __exit__(self, *_: object) -> None:
        self.library.elbow_predict_model_free(self.handle)

    def ask(self, at: Situation) -> Answer:
        answer = Answer()
        place = (at.n, at.n_other, at.comp_node, at.comm_node)
        done = self.library.elbow_predict(self.handle, *place, ctypes.byref(answer))
        assert done == 0, self.library.elbow_predict_error().decode()
        return answer

    def ask_load(self, load: Load) -> LoadAnswer | tuple[int, str]:
        """The answer, else errno and the sentence."""
        groups = [Group(g.socket, g.node, g.count, g.intensity) for g in load.computing]
        copies = [Copy(c.node, c.demand) for c in load.copies]
        argument = LoadArgument(
            groups=(Group * len(groups))(*groups),
            group_count=len(groups),
            copies=(Copy * len(copies))(*copies),
            copy_count=len(copies),
        )
        if load.messages is not None:
            m = load.messages
            messages = Messages(
                node=m.node, direction=DIRECTIONS.index(m.direction), bytes=m.size or 0, threads=m.threads
            )
            argument.messages = ctypes.pointer(messages)
        answer = LoadAnswer(groups=(Interval * len(groups))(), copies=(Interval * len(copies))())
        done = self.library.elbow_predict_for_load(self.handle, ctypes.byref(argument), ctypes.byref(answer))
        if done == 0:
            return answer
        return ctypes.get_errno(), self.library.elbow_predict_error().decode()


class LoadedGpu:
    """The accelerator of a model file in the library."""

    def __init__(self, library: Any, path: Path) -> None:
        self.library = library
        self.handle = library.elbow_predict_gpu_load(str(path).encode())
        assert self.handle, library.elbow_predict_error().decode()

    def __enter__(self) -> LoadedGpu:
        return self

    def __exit__(self, *_: object) -> None:
        self.library.elbow_predict_gpu_free(self.handle)

    def ask(self, case: DeviceCase) -> GpuAnswer | tuple[int, str]:
        """The answer, else errno and the sentence."""
        asked = GpuCase(
            victim=VICTIMS.index(case.victim),
            mover=MOVERS.index(case.mover),
            direction=MOVES.index(case.direction),
            sms=case.sms,
            node=case.node,
            victim_first=case.first == "victim",
            pace=case.pace_mb_s,
            shape=(ctypes.c_int * 3)(*(case.shape or (0, 0, 0))),
        )
        answer = GpuAnswer()
        done = self.library.elbow_predict_gpu(self.handle, ctypes.byref(asked), ctypes.byref(answer))
        if done == 0:
            return answer
        return ctypes.get_errno(), self.library.elbow_predict_error().decode()


def tree() -> Path:
    """The build folder."""
    given = Path(os.environ.get("ELBOWROOM_PREDICT") or os.devnull)
    if (given / "build.ninja").exists():
        return given
    return native.cache_folder().parent / f"predict-{_key()}"


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
    library.elbow_predict_model_load.restype = ctypes.c_void_p
    library.elbow_predict_model_load.argtypes = [ctypes.c_char_p, ctypes.c_char_p]
    library.elbow_predict_model_at_size.restype = ctypes.c_void_p
    library.elbow_predict_model_at_size.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    library.elbow_predict_model_free.argtypes = [ctypes.c_void_p]
    library.elbow_predict.argtypes = [ctypes.c_void_p, *[ctypes.c_int] * 4, ctypes.POINTER(Answer)]
    library.elbow_predict_for_load.argtypes = [
        ctypes.c_void_p,
        ctypes.POINTER(LoadArgument),
        ctypes.POINTER(LoadAnswer),
    ]
    library.elbow_predict_gpu_load.restype = ctypes.c_void_p
    library.elbow_predict_gpu_load.argtypes = [ctypes.c_char_p]
    library.elbow_predict_gpu_free.argtypes = [ctypes.c_void_p]
    library.elbow_predict_gpu_sms.argtypes = [ctypes.c_void_p]
    library.elbow_predict_gpu.argtypes = [
        ctypes.c_void_p,
        ctypes.POINTER(GpuCase),
        ctypes.POINTER(GpuAnswer),
    ]
    library.elbow_predict_error.restype = ctypes.c_char_p
    return library


def run(*words: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """A program's output, whatever it says."""
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=60, **options)


def flow_values(rng: np.random.Generator) -> tuple[float, ...]:
    """FLOW's parameters without sense, zeros among them where they may be."""
    values = []
    for name in NAMES:
        if name.startswith(("floor", "weight")):
            values.append(float(rng.choice([0.0, rng.uniform(0, 1)])))
        elif name.startswith(("dip", "rise", "excess")):
            values.append(float(rng.choice([0.0, rng.uniform(0, 0.4)])))
        elif name in ("remote_weight", "remote_cost", "cost_first", "cost_second"):
            values.append(float(rng.uniform(0.3, 3)))
        else:
            values.append(float(rng.uniform(2e3, 5e4)))
    return tuple(values)


def _key() -> str:
    digest = hashlib.sha256(native.compiler_identity().encode())
    for file in sorted([*(ROOT / "lib" / "predict").iterdir(), ROOT / "include" / "elbowroom" / "predict.h"]):
        digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stdout[-4000:] + done.stderr[-4000:])
