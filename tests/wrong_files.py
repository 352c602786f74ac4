"""The files that tests/wrong_inputs.py names: sound ones, and below bad/ ones that nobody can read."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import msgspec

import gpu_samples
from elbowroom.broadcast.factorizations import STEPS, KernelTimes
from elbowroom.documents import encode
from elbowroom.measure.source import Where, choose
from elbowroom.measure.study import StudyFolder
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

NUMBERS = ("-0", "nan", "inf", "1e400", "1e308", "1e-320", str(2**63))
"""Numbers that are no bandwidth in MB/s, though most of them can be represented. Zero may be a count."""

TOML_NUMBERS = {
    "job": ("cores", "18"),
    "gpu-job": ("seconds", "0.010"),
    "jobs": ("hours", "3.0"),
    "load": ("count", "4"),
    "apps": ("cores", "2"),
}
"""Of each sound TOML file a key and its value, which is replaced by NUMBERS."""

CURVES = """# name: m
# cores_first_socket: 4
# numa_per_socket: 1
comp_node,comm_node,n,comp_alone,comm_alone,comp_together,comm_together
0,0,1,{},10871.0,5630.0,10865.1
"""

WRITTEN: tuple[tuple[str, Any], ...] = (
    ("measured_s", 2**63),
    ("measured_s", 1e308),
    ("start_ns", 2**63),
    ("index", 2**63),
    ("comp", {"rate": 1e308, "unit": "MB/s"}),
    ("comm", {"value": 2**63, "unit": "us"}),
    ("comm", {"value": 1.0, "unit": "us", "batches": [1e308]}),
)
"""Fields of a measured phase with numbers that no probe writes."""

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
    times = KernelTimes(block=320, seconds=dict.fromkeys(STEPS, 1e-3))
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
    for number, value in enumerate(NUMBERS):
        (bad / f"curves-{number}.csv").write_text(CURVES.format(value))
    one_core = CURVES.replace("cores_first_socket: 4", "cores_first_socket: 1")
    (folder / "one-point.csv").write_text(one_core.format(5630.2))
    for name, (key, sound) in TOML_NUMBERS.items():
        text = (folder / f"{name}.toml").read_text()
        for number, value in enumerate(NUMBERS[1:]):
            changed = re.sub(rf"\b{key} = {sound}", f"{key} = {value}", text, count=1)
            assert changed != text
            (bad / f"{name}-{number}.toml").write_text(changed)
    for key in ("cores_first_socket", "sockets", "numa_per_socket", "nic_node"):
        model = json.loads((folder / "model.json").read_bytes())
        model["machine"][key] = 2**63
        (bad / f"model-{key}.json").write_text(json.dumps(model))
    large = json.loads((folder / "times.json").read_bytes()) | {"block": 2**63}
    (bad / "times.json").write_text(json.dumps(large))
    _damaged_runs(bad, recorded)
    _damaged_studies(bad)


def machines(folder: Path, text: str) -> None:
    """Writes machine files with one value each out of all bounds; `text` is a sound one."""
    for number, (key, value) in enumerate(MACHINES):
        changed = re.sub(rf"^{key} = .*$", f"{key} = {value}", text, count=1, flags=re.MULTILINE)
        assert changed != text
        (folder / f"machine-{number}.toml").write_text(changed)


def _line(**fields: Any) -> bytes:
    """A line of a journal with these fields in its only phase."""
    record = {"status": "ok", "phases": [{"phase": "A", "index": 0, **fields}]}
    return json.dumps({"point": "p", "repetition": 0, "record": record}).encode() + b"\n"


def _damaged_studies(bad: Path) -> None:
    machine = choose(Where(machine="henri")).machine()
    begun = StudyFolder(study="denis2021", created="", elbowroom="9.0.0", machine=machine)
    sound = json.loads(encode(begun))
    changes: dict[str, dict[str, Any]] = {
        "newer": {"version": 99},
        "unversioned": {"version": None},
        "unknown": {"study": "denis2035"},
        "label": {"only": ["Fig. 99"]},
        "where": {"where": {"launcher": 3}},
        "infinite": {"budget": 1e308},
    }
    for name, changed in changes.items():
        (bad / f"study-{name}").mkdir()
        (bad / f"study-{name}" / "study.json").write_text(json.dumps(sound | changed))
    (bad / "study-folder" / "study.json").mkdir(parents=True)


def _damaged_runs(bad: Path, recorded: Path) -> None:
    deep = (bad / "deep.json").read_bytes()
    header = b'{"schema":"elbowroom/samples","version":1}\n'
    sound = (recorded / "manifest.json").read_bytes()
    manifests = {
        "empty": b"",
        "cut": sound[:500],
        "binary": b"\x00\xff" * 64,
        "deep": deep,
        "list": b"[1, 2]",
        "other": b'{"schema": "other", "version": 1}',
        "mpi": json.dumps(json.loads(sound) | {"hello": {"mpi": 3}}).encode(),
        "newer": json.dumps({"schema": "elbowroom/manifest", **NEWER}).encode(),
    }
    journals = {
        "binary": b"\x00\xff\n" * 64,
        "shape": header + b"[1,2]\n3\n",
        "deep": header + deep + b"\n",
        **{f"number-{number}": header + _line(**{key: value}) for number, (key, value) in enumerate(WRITTEN)},
        "newer": header.replace(b'"version":1', b'"version":99'),
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
    fewer = bad / "journal-points"
    shutil.copytree(recorded, fewer)
    manifest = json.loads((fewer / "manifest.json").read_bytes())
    manifest["points"] = manifest["points"][:2]
    (fewer / "manifest.json").write_text(json.dumps(manifest))
