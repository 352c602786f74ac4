"""Run folders made of the raw answers of benchmarks/device.py, for everything that reads a run."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "src"))

from device_machine import Shape, replaced  # noqa: E402
from device_study import whole_lines  # noqa: E402

from elbowroom.documents import convert  # noqa: E402
from elbowroom.machine.hwloc import read_topology  # noqa: E402
from elbowroom.machine.topology import Machine, here  # noqa: E402
from elbowroom.measure.campaign import finish, measured_seconds  # noqa: E402
from elbowroom.measure.results import Results  # noqa: E402
from elbowroom.points.point import Note, Point, unstored  # noqa: E402
from elbowroom.points.unit import Entry, Unit  # noqa: E402
from elbowroom.store.folder import Manifest, RunFolder  # noqa: E402

LAUNCHER = "local"
COMMAND = ("python", "benchmarks/device.py")


class Raw(msgspec.Struct, frozen=True):
    """The folder raw/ of a study: facts, plan, machine, and the lines of each part."""

    folder: Path
    facts: dict[str, Any]
    plan: dict[str, Any]
    machine: Machine
    shape: Shape

    @classmethod
    def read(cls, folder: Path) -> Raw:
        """Reads what is there."""
        facts, plan = (json.loads((folder / f"{name}.json").read_text()) for name in ("facts", "plan"))
        topology = read_topology((folder / "topology.xml").read_text())
        machine = here(topology, allowed=set(facts["cpus"]))
        return cls(folder, facts, plan, machine, Shape(tuple(plan["cores"]), tuple(plan["nodes"])))

    def lines(self, part: str) -> list[dict[str, Any]]:
        """Answers and greetings of a part, in the order of measuring."""
        return [json.loads(line) for line in whole_lines(self.folder / f"{part}.jsonl")]


def point_of(plain: Mapping[str, Any], shape: Shape) -> Point:
    """A point of the plan on the machine that was measured."""
    return convert(unstored(replaced(plain, shape)), Point, subject="point")


def entries_of(lines: list[dict[str, Any]], run: str, points: list[Point]) -> list[Entry]:
    """The answers of a run, under the ids that its points have on this machine; the last of each unit."""
    answers: dict[Unit, Entry] = {}
    for line in lines:
        if line.get("run") == run:
            name = points[line["point"]].id
            record = {**line["record"], "point": name, "start": line["start"]}
            unit = Unit(point=name, repetition=line["repetition"], closing=line["closing"])
            answers.pop(unit, None)
            answers[unit] = Entry(**msgspec.to_builtins(unit), record=record)
    return list(answers.values())


def write_run(raw: Raw, part: Mapping[str, Any], name: str, out: Path) -> Results | None:
    """The run folder of a run, sealed, and what it says; None where none of its points was measured."""
    run, lines = part["runs"][name], raw.lines(part["name"])
    points = [point_of(plain, raw.shape) for plain in run["points"]]
    entries = entries_of(lines, name, points)
    asked = {entry.point for entry in entries}
    if not any(entry.record["status"] != "failed" for entry in entries):
        return None
    notes = [Note(**note) for note in run["notes"]]
    if missing := sum(point.id not in asked for point in points):
        notes.append(Note(what=f"{missing} points", status="left out", reason="there was no time for them"))
    hello = next(line["hello"] for line in lines if "hello" in line)
    manifest = Manifest(
        elbowroom=raw.plan["elbowroom"],
        created=raw.facts["created"],
        command=COMMAND,
        plan=run["plan"],
        points=tuple(point for point in points if point.id in asked),
        notes=tuple(notes),
        seed=run["plan"]["seed"],
        launcher=LAUNCHER,
        machine=raw.machine,
        mpi=raw.plan["mpi"],
        hello={key: value for key, value in hello.items() if key != "kernels"},
        kernels=tuple(hello.get("kernels", ())),
        state={"before": raw.facts["state"]},
        observers=raw.facts["observers"],
        measured_s=sum(measured_seconds(entry.record) for entry in entries),
    )
    topology = (raw.folder / "topology.xml").read_text()
    return finish(RunFolder.create(out / name, manifest, topology, entries))


def write_runs(raw: Raw, out: Path) -> dict[str, Results]:
    """The run folders of all parts, and what they say, by name; earlier ones are replaced."""
    shutil.rmtree(out, ignore_errors=True)
    names = [(part, name) for part in raw.plan["parts"] for name in part["runs"]]
    written = {name: write_run(raw, part, name, out) for part, name in names}
    return {name: results for name, results in written.items() if results is not None}
