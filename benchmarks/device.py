"""Everything that a machine with a GPU is asked, by one command of nine minutes that needs Python alone.

    python benchmarks/device.py --prepare DIR                         here: the folder to take along
    python benchmarks/device.py --bundle DIR -o OUT [--minutes 9]     there: measures
    python benchmarks/device.py --report -o OUT                       here again: run folders and a page
    python benchmarks/device.py --stand-in --minutes 1 -o OUT         a rehearsal without a GPU

What is taken along (the tree and DIR, at most 64 MiB) has the programs and their libraries. Nothing is
installed, compiled or fetched there. OUT has `summary.json` and one archive of at most 16 MiB, which is
written again after each part; a later command with the same -o measures what is missing. The status of a
part: `ok`; `partial` and `failed`, with the reason, if some or all of its units were not measured; `n/a` if
this machine has no GPU.
"""

from __future__ import annotations

import argparse
import atexit
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

sys.path.insert(0, str(Path(__file__).resolve().parent))

from command import Command
from device_machine import Shape, cores_by_node, replaced, shape_of
from device_programs import (
    Lost,
    Program,
    cuda_folders,
    end_all,
    library_path,
    output,
    own_environment,
    with_libraries,
)
from device_study import Study, whole_lines

ROOT = Path(__file__).resolve().parents[1]
START_PATIENCE = 60.0
"""Seconds: the driver of a sleeping device takes several to start."""
MOST_RESTARTS = 3
LOST_EARLIER = "the device was lost in"
"""How gpu-streams refuses what is asked after its device was lost."""
STAND_IN = {
    "sms": 16,
    "interference": [
        {"victim": "gemm", "mover": "elbow_hold_pairs", "kept": 0.6},
        {"victim": "elbow_triad", "mover": "h2d", "kept": 0.7},
        {"victim": "elbow_triad", "mover": "elbow_copy", "kept": 0.8},
        {"victim": "elbow_small", "mover": "d2h", "kept": 0.5},
    ],
}
"""What the rehearsal plants (lib/gpu/stand_in/settings.hpp), unless ELBOW_STAND_IN names a file."""


class Stopped(BaseException):
    """A signal ended the measuring."""


class Carried:
    """The programs of a bundle, and the environment that they are started in."""

    def __init__(self, bundle: Path, study: Study) -> None:
        self.bundle, self._study = bundle, study
        self.environment = own_environment(os.environ)
        self.plant({})
        self.folders = cuda_folders(self.environment)
        system = os.environ.get("LD_LIBRARY_PATH", "")
        self.libraries = library_path(bundle, system)
        try:
            self.output("probe", "kernels")
        except Lost:
            self.libraries = library_path(bundle, system, all_spare=True)

    def plant(self, settings: Mapping[str, Any]) -> None:
        """Lets the stand-in driver answer, with these settings beside the others; nothing on a device."""
        if not self._study.summary["stand_in"]:
            return
        named = os.environ.get("ELBOW_STAND_IN")
        planted = json.loads(Path(named).read_text()) if named else dict(STAND_IN)
        folder = self.bundle / "stand-in"
        self._study.write("stand-in.json", {**planted, **settings})
        self.environment["ELBOW_STAND_IN"] = str(self._study.raw / "stand-in.json")
        self.environment["ELBOWROOM_CUDA"] = str(folder / "libcuda.so.1")
        self.environment["ELBOWROOM_NVML"] = str(folder / "libnvidia-ml.so.1")
        self.environment.setdefault("ELBOWROOM_CUDA_LIBRARIES", str(folder))

    def output(self, name: str, *arguments: str, patience: float = START_PATIENCE) -> str:
        """What a program prints without MPI; raises Lost where it fails."""
        words = with_libraries(self.libraries, [str(self.bundle / "bin" / name), *arguments])
        return output(words, self.environment, min(patience, self._study.left() + 1))

    def start(self, start: Mapping[str, Any], end: float) -> Program:
        """The program of a start of a part; raises Lost where it does not say hello before `end`."""
        config = self._study.raw / "config.json"
        config.write_text(json.dumps(start["config"]))
        program = [str(self.bundle / "bin" / start["program"])]
        values = {"{bundle}": str(self.bundle), "{config}": str(config)}
        words: list[str] = []
        for word in start["command"]:
            for name, value in values.items():
                word = word.replace(name, value)
            words += with_libraries(self.libraries, program) if word == "{program}" else [word]
        if start["program"] == "gpu-streams":
            words += [word for folder in self.folders for word in ("--library", folder)]
        patience = max(0.0, min(START_PATIENCE, end - time.monotonic()))
        return Program(words, {**start["environment"], **self.environment}, patience)


def look(study: Study, carried: Carried) -> dict[str, Any]:
    """The facts of this machine, written to raw/facts.json; what cannot be read is `unknown`, and why."""
    begun, study.part = time.monotonic(), "facts"
    facts: dict[str, Any] = {
        "created": time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime()),
        "system": " ".join(platform.uname()),
        "python": platform.python_version(),
        "cpus": sorted(os.sched_getaffinity(0)),
        "cuda_folders": carried.folders,
    }
    asked = {
        "state": ("probe", "state"),
        "observers": ("probe", "observe"),
        "kernels": ("probe", "kernels"),
        "gpu": ("gpu-bench", "facts", *carried.folders),
    }
    for name, words in asked.items():
        try:
            facts[name] = json.loads(carried.output(*words))
        except (Lost, ValueError) as error:
            facts[name] = {"unknown": str(error)}
    try:
        facts["nvidia_smi"] = output(["nvidia-smi", "-q"], os.environ, 15.0)
    except Lost as lost:
        facts["nvidia_smi"] = f"unknown: {lost}"
    topology = carried.output("probe", "topology", "--xml", "-")
    before = study.read("facts.json")
    if before is not None and _identity(before) != _identity(facts):
        there, here = _identity(before), _identity(facts)
        fail(f"{study.folder} has results of {there}, and this machine is {here}; name another -o")
    study.write("topology.xml", topology)
    study.write("facts.json", facts)
    study.summary["device"] = facts["gpu"].get("device", {}).get("name")
    missing = [name for name in asked if "unknown" in facts[name]]
    missing += [name for name in ("compiler", "gemm") if "unknown" in facts["gpu"].get(name, {})]
    study.keep(
        "facts", begun, "partial" if missing else "ok", f"unknown: {', '.join(missing)}" if missing else ""
    )
    return facts


def _identity(facts: Mapping[str, Any]) -> str:
    return f"{facts['gpu'].get('device', {}).get('name', 'no GPU')} with {len(facts['cpus'])} processors"


class Measuring:
    """A part at work: its requests are asked one after the other until its time is over."""

    def __init__(
        self, study: Study, carried: Carried, shape: Shape, part: Mapping[str, Any], end: float
    ) -> None:
        self._study, self._carried, self._shape = study, carried, shape
        self._part, self._end = part, end
        self._path = study.raw / f"{part['name']}.jsonl"
        lines = [json.loads(line) for line in whole_lines(self._path)]
        self._done = {_key(line): line for line in lines if "record" in line}
        self._starts = sum("hello" in line for line in lines)
        self._restarts = 0
        self._reason = ""
        self._longest = 0.0

    def run(self) -> None:
        """Asks; nothing that happens to a program ends more than its own start."""
        for start in self._part["starts"]:
            units = deque(unit for unit in start["units"] if self._missing(unit))
            while units and self._again(start, units):
                self._restarts += 1

    def outcome(self) -> tuple[str, str, dict[str, int]]:
        """Status, reason and numbers of units."""
        asked = [unit for start in self._part["starts"] for unit in start["units"]]
        answers = [self._done[_key(unit)]["record"] for unit in asked if _key(unit) in self._done]
        failed = [answer for answer in answers if answer["status"] == "failed"]
        numbers = {"asked": len(asked), "measured": len(answers) - len(failed), "failed": len(failed)}
        reason = self._reason or (failed[0]["reason"] if failed else "")
        if numbers["measured"] == numbers["asked"]:
            return "ok", "", numbers
        if not reason:
            reason = "the time was over"
        return "partial" if numbers["measured"] else "failed", reason, numbers

    def _missing(self, unit: Mapping[str, Any]) -> bool:
        line = self._done.get(_key(unit))
        return line is None or line["record"]["status"] == "failed"

    def _again(self, start: Mapping[str, Any], units: deque[dict[str, Any]]) -> bool:
        """Whether another start of the program should go on with the units that are left."""
        if self._over() or self._restarts > MOST_RESTARTS:
            return False
        try:
            program = self._carried.start(start, self._end)
        except Lost as lost:
            self._reason = str(lost)
            return not self._over()
        try:
            self._write({"hello": program.hello, "start": self._starts, "program": start["program"]})
            self._starts += 1
            return self._ask(program, units)
        finally:
            program.close()

    def _ask(self, program: Program, units: deque[dict[str, Any]]) -> bool:
        while units:
            unit, begun = units[0], time.monotonic()
            if begun + self._longest > self._end:
                return False
            try:
                patience = min(unit["patience"], self._end - begun)
                answer = program.ask(replaced(unit["request"], self._shape), patience)
            except Lost as lost:
                if self._over():  # cut off by the end of the time, which says nothing about the unit
                    return False
                self._keep(units.popleft(), _failed(unit, str(lost)))
                return True
            if answer.get("record") != "repetition":
                words = (answer.get("field"), answer.get("message", answer), answer.get("hint"))
                answer = _failed(unit, "; ".join(str(word) for word in words if word))
            if LOST_EARLIER in answer["reason"]:  # it may be there for a new process
                self._reason = answer["reason"]
                return True
            self._keep(units.popleft(), answer)
            self._longest = max(self._longest, time.monotonic() - begun)
        return False

    def _over(self) -> bool:
        return time.monotonic() >= self._end

    def _keep(self, unit: Mapping[str, Any], record: dict[str, Any]) -> None:
        line = {name: unit[name] for name in ("run", "point", "repetition", "closing")}
        line |= {"start": self._starts - 1, "record": record}
        self._done[_key(unit)] = line
        self._write(line)

    def _write(self, line: Mapping[str, Any]) -> None:
        with open(self._path, "a", encoding="utf-8") as file:
            file.write(json.dumps(line, separators=(",", ":")) + "\n")


def _key(unit: Mapping[str, Any]) -> tuple[Any, ...]:
    return unit["run"], unit["point"], unit["repetition"], unit["closing"]


def _failed(unit: Mapping[str, Any], reason: str) -> dict[str, Any]:
    head = {"record": "repetition", "point": unit["request"]["point"], "repetition": unit["repetition"]}
    return {**head, "status": "failed", "reason": reason, "flags": [], "phases": []}


def measure(study: Study, bundle: Path, chosen: Sequence[str]) -> None:
    """The chosen parts, or all, in order; each gets its share of the time that is left."""
    carried = Carried(bundle, study)
    facts = look(study, carried)
    nodes = cores_by_node((study.raw / "topology.xml").read_text(), set(facts["cpus"]))
    scale = "stand-in" if study.summary["stand_in"] else "device"
    try:
        shape, plan = shape_of(nodes, sorted((bundle / "plans").glob(f"{scale}-*.json")))
    except ValueError as error:
        raise Lost(str(error)) from error
    study.write("plan.json", {**plan, "cores": shape.cores, "nodes": shape.nodes})
    names = [part["name"] for part in plan["parts"]]
    if wrong := set(chosen) - set(names):
        fail(f"there is no part {min(wrong)}; the parts are {', '.join(names)}")
    parts = [part for part in plan["parts"] if part["name"] in (chosen or names)]
    for number, part in enumerate(parts):
        begun, study.part = time.monotonic(), part["name"]
        share = part["seconds"] / sum(other["seconds"] for other in parts[number:])
        if part["gpu"] and "unknown" in facts["gpu"]:
            study.keep(part["name"], begun, "n/a", facts["gpu"]["unknown"])
            continue
        carried.plant(part["stand_in"])
        work = Measuring(study, carried, shape, part, begun + share * study.left())
        work.run()
        status, reason, numbers = work.outcome()
        study.keep(part["name"], begun, status, reason, units=numbers)


def project(module: str, *arguments: str) -> int:
    """Calls `main` of a module beside this one with the project's own Python."""
    own = ROOT / ".elbowroom" / "venv" / "bin" / "python"
    python = str(own) if own.exists() else sys.executable
    code = (
        "import sys; _, folder, *words = sys.argv; sys.path.insert(0, folder); "
        f"from {module} import main; sys.exit(main(*words))"
    )
    command = [python, "-c", code, str(Path(__file__).resolve().parent), *arguments]
    return subprocess.run(command, check=False).returncode


def bundle_of(named: str | None) -> Path:
    """The bundle; without a name one that is prepared now, where the project's Python is."""
    if named:
        return Path(named).resolve()
    scratch = tempfile.mkdtemp(prefix="elbowroom-device-")
    atexit.register(shutil.rmtree, scratch, ignore_errors=True)
    path = Path(scratch, "bundle")
    if project("device_bundle", str(path)) != 0:
        fail("no bundle was named, and none can be prepared here; give --bundle DIR")
    return path


def fail(sentence: str) -> NoReturn:
    """Ends with a sentence, as for a wrong request."""
    print(f"device.py: {sentence}", file=sys.stderr)
    sys.exit(2)


def watch(study: Study) -> threading.Timer:
    """Ends everything shortly before the time is over, whatever the main thread waits for."""

    def give_up() -> None:
        end_all()
        study.keep(study.part, study.begun, "failed", "it was still at work when the time was over")
        os._exit(0)

    timer = threading.Timer(study.latest - time.monotonic(), give_up)
    timer.daemon = True
    timer.start()
    return timer


def stop(number: int, _: object) -> NoReturn:
    """Ends the measuring as the end of the time does."""
    raise Stopped(signal.Signals(number).name)


def run(asked: argparse.Namespace, bundle: Path) -> int:
    """Measures; 0 where anything was."""
    study = Study(asked.out.resolve(), asked.minutes, asked.archive)
    study.summary["stand_in"] = asked.stand_in
    timer = watch(study)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, stop)
    try:
        measure(study, bundle, asked.parts)
    except (Lost, Stopped) as ended:
        study.summary["ended_by"] = str(ended)
        print(f"device.py: {ended}", file=sys.stderr)
    finally:
        end_all()
        timer.cancel()
        study.save()
    measured = (part.get("units", {}).get("measured", 0) for part in study.summary["parts"])
    return int(not any(measured))


def main() -> int:
    """Prepares, measures or reports."""
    parser = Command(__doc__, smoke="--prepare {folder}/bundle")
    parser.add_argument("-o", "--out", type=Path, help="folder of the results")
    parser.add_argument("--minutes", type=float, default=9.0, help="everything ends within them (9)")
    parser.add_argument("--stand-in", action="store_true", help="rehearse on the driver's stand-in")
    parser.add_argument("--bundle", metavar="DIR", help="what --prepare wrote; without it, prepared now")
    parser.add_argument("--archive", type=Path, metavar="FILE", help="the archive, if it is not in OUT")
    parser.add_argument("--prepare", metavar="DIR", help="write the folder to take along, and end")
    parser.add_argument("--parts", type=lambda text: text.split(","), default=[], help="only these, by name")
    parser.add_argument("--report", action="store_true", help="make run folders and a page, and end")
    asked = parser.parse_args()
    if asked.prepare:
        return project("device_bundle", asked.prepare)
    if asked.out is None or not 0 < asked.minutes <= 60:
        parser.error("give -o OUT, and minutes above 0 and at most 60")
    if asked.report:
        return project("device_report", str(asked.out.resolve()))
    return run(asked, bundle_of(asked.bundle))


if __name__ == "__main__":
    sys.exit(main())
