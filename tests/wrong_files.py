"""The files that tests/wrong_inputs.py names: sound ones, and below bad/ ones that nobody can read."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import msgspec

import gpu_samples
from elbowroom.broadcast.factorizations import STEPS, StepTimes
from elbowroom.store.models import write_model

DEEP = 100_000
"""Levels of the deeply nested documents."""

MACHINES = (
    ("cores_per_socket", "1000000000"),
    ("numa_per_socket", "100000"),
    ("threads_per_core", "0"),
    ("memory_gb", "inf"),
    ("caches", "[[1, 99999999999999999, 1]]"),
    ("clock_ghz", "nan"),
    ("t_par_max", "inf"),
    ("b_comm_seq", "nan"),
    ("n_seq_max", "999999999"),
    ("alpha", "-1"),
)
"""Keys of a machine file and values that no machine has."""

NEWER = {"version": 99, "written_by": "9.0.0"}


def furnish(folder: Path, recorded: Path, docs: Path) -> None:
    """Puts all of them into `folder`; `recorded` is a run, `docs` the repository's docs/."""
    shutil.copytree(recorded, folder / "run")
    shutil.copy(recorded.parent / "model-1.json", folder / "model.json")
    shutil.copy(docs / "guide" / "job.toml", folder / "job.toml")
    shutil.copy(docs / "guide" / "gpu-job.toml", folder / "gpu-job.toml")
    shutil.copy(docs / "guide" / "jobs.toml", folder / "jobs.toml")
    write_model(folder / "gpu.json", gpu_samples.document(gpu_samples.two_node_part()))
    shutil.copy(docs.parent / "machines" / "colocation" / "koop_shared_8x8.csv", folder / "matrix.csv")
    times = StepTimes(block=320, seconds=dict.fromkeys(STEPS, 1e-3))
    (folder / "times.json").write_bytes(msgspec.json.encode(times))
    (folder / "apps.toml").write_text("cores = 2\n[apps.a]\ncommand = 'true'\n")
    (folder / "load.toml").write_text("[[computing]]\nnode = 0\ncount = 4\n[messages]\nnode = 0\n")
    for name in ("folder", "folder.svg"):
        (folder / name).mkdir()
    bad = folder / "bad"
    bad.mkdir()
    deep = "[" * DEEP + "]" * DEEP
    texts = {
        "empty": b"",
        "binary": b"\x00\xff\xfe\x01" * 64,
        "cut.json": b'{"schema": "elbowroom/model", "ver',
        "cut.toml": b'name = "stenc',
        "deep.json": deep.encode(),
        "deep.toml": f"a = {deep}".encode(),
        "deep.xml": b"<a>" * DEEP,
        "other.json": b'{"schema": "other", "version": 1}',
        "list.json": b"[1, 2]",
        "utf16.toml": "name = 'x'\n".encode("utf-16"),
        "keys.toml": b"nonesuch = 3\n",
        "newer.json": json.dumps({"schema": "elbowroom/model", **NEWER}).encode(),
    }
    texts |= {f"{name}.{ending}": texts[name] for name in ("empty", "binary") for ending in ("toml", "xml")}
    for name, text in texts.items():
        (bad / name).write_bytes(text)
    for name in ("folder", "folder.toml"):
        (bad / name).mkdir()
    for name in ("fifo", "fifo.toml", "fifo.xml"):
        os.mkfifo(bad / name)
    for name in ("zero", "zero.toml"):
        (bad / name).symlink_to("/dev/zero")
    for name in ("loop", "loop.toml"):
        (bad / name).symlink_to(name)
    _damaged_runs(bad, recorded)


def machines(folder: Path, text: str) -> None:
    """Writes machine files with one value each out of all bounds; `text` is a sound one."""
    for number, (key, value) in enumerate(MACHINES):
        changed = re.sub(rf"^{key} = .*$", f"{key} = {value}", text, count=1, flags=re.MULTILINE)
        assert changed != text
        (folder / f"machine-{number}.toml").write_text(changed)


def _damaged_runs(bad: Path, recorded: Path) -> None:
    deep = (bad / "deep.json").read_bytes()
    header = b'{"schema":"elbowroom/samples","version":1}\n'
    manifests = {
        "empty": b"",
        "cut": (recorded / "manifest.json").read_bytes()[:500],
        "binary": b"\x00\xff" * 64,
        "deep": deep,
        "list": b"[1, 2]",
        "other": b'{"schema": "other", "version": 1}',
        "newer": json.dumps({"schema": "elbowroom/manifest", **NEWER}).encode(),
    }
    journals = {
        "binary": b"\x00\xff\n" * 64,
        "shape": header + b"[1,2]\n3\n",
        "deep": header + deep + b"\n",
    }
    for kind, file, texts in (("run", "manifest.json", manifests), ("journal", "samples.jsonl", journals)):
        for name in (*texts, "fifo", "zero", "folder", "missing"):
            copy = bad / f"{kind}-{name}"
            shutil.copytree(recorded, copy)
            (copy / file).unlink()
            if name in texts:
                (copy / file).write_bytes(texts[name])
            elif name == "fifo":
                os.mkfifo(copy / file)
            elif name == "zero":
                (copy / file).symlink_to("/dev/zero")
            elif name == "folder":
                (copy / file).mkdir()
