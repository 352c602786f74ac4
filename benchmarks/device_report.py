"""A page about what benchmarks/device.py measured, and the run folders and models behind it."""

from __future__ import annotations

import csv
import json
import re
import shutil
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent))

from device_plans import FITTED, REPEATED
from device_runs import Raw, write_runs
from device_study import unpack
from gpu_published import PUBLISHED
from gpu_unseen import BYTES, STEP_S, elbowroom, mean_errors, overlapped_seconds

from elbowroom.experiments.gpu.results import CopyRow
from elbowroom.experiments.gpu.results import rows as rows_of_copies
from elbowroom.experiments.gpu_overlap.results import OverlapRow
from elbowroom.experiments.gpu_overlap.results import rows as rows_of_overlap
from elbowroom.measure.results import Results
from elbowroom.stats.interval import Kept

ROOT = Path(__file__).parents[1]
MEASURED = ROOT / "docs" / "measured"
KEPT = ROOT / "machines" / "measured"

Lines = Iterator[str]


class Runs(NamedTuple):
    """Raw answers, and the run folders made of them with what each says, by name."""

    raw: Raw
    folder: Path
    results: Mapping[str, Results]

    def there(self, *names: str) -> list[str]:
        """Those of these runs that were measured."""
        return [name for name in names if name in self.results]

    def overlap(self, *names: str) -> list[OverlapRow]:
        """Rows of runs of `gpu-overlap`."""
        return [row for name in self.there(*names) for row in rows_of_overlap(self.results[name].points)]

    def copies(self, *names: str) -> list[CopyRow]:
        """Rows of runs of `gpu`."""
        return [row for name in self.there(*names) for row in rows_of_copies(self.results[name].points)]

    def fit(self, file: str, *names: str) -> str:
        """Fits a model to those of these runs that were measured; the reason if that cannot be done."""
        folders = [str(self.folder / name) for name in self.there(*names)]
        try:
            elbowroom("fit", *folders, "-o", str(self.folder / file))
        except subprocess.CalledProcessError as error:
            return f"Not fitted: {str(error.stderr).strip().splitlines()[-1]}"
        return ""


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> Lines:
    """A table of Markdown and an empty line."""
    yield f"| {' | '.join(heads)} |"
    yield f"|{'---|' * len(heads)}"
    yield from (f"| {' | '.join(map(str, row))} |" for row in rows)
    yield ""


def percent(value: float | None, digits: int = 1) -> str:
    """A share in percent."""
    return "-" if value is None else f"{100 * value:.{digits}f}"


def share(kept: Kept | None) -> str:
    """What is kept, in percent."""
    return percent(kept.value if kept else None)


def facts(raw: Raw, summary: Mapping[str, Any]) -> Lines:
    """The machine and the parts."""
    gpu, machine = raw.facts["gpu"], raw.machine
    device = gpu.get("device", {})
    if summary["stand_in"]:
        yield "**A rehearsal: the driver's stand-in answered, its rates are planted. Nothing was measured.**"
        yield ""
    management = gpu.get("management", {})
    rows = [
        ("device", f"{device.get('name', 'none')}, {device.get('sms', '-')} SMs"),
        ("CUDA, driver", f"{gpu.get('cuda', '-')}, {management.get('driver', '-')}"),
        ("host", f"{machine.model}, {len(machine.allowed)} cores, {len(machine.nodes)} NUMA nodes"),
        ("measured", f"{raw.facts['created']}, by elbowroom {raw.plan['elbowroom']}"),
        ("link", ", ".join(f"{name} {known}" for name, known in management.get("link", {}).items()) or "-"),
    ]
    yield from table(("", ""), rows)
    yield "`python benchmarks/device.py` ran these parts:"
    yield ""
    parts = [
        (part["name"], f"{part['seconds']:.0f}", part["status"], part.get("reason", ""))
        for part in summary["parts"]
    ]
    yield from table(("Part", "s", "Status", "Reason"), parts)


def controls(runs: Runs) -> Lines:
    """Medians of the same run, measured again; and kernels beside a load that only asks for an event."""
    yield "## Controls"
    yield ""
    first, *others = REPEATED
    once = {row.point: row for row in runs.overlap(first)}
    rows = []
    for name in others:
        if differences := list(compared(once, runs.overlap(name))):
            most, point, side = max(differences)
            rows.append((name, len(differences), percent(most, 2), f"{point}, {side}"))
    yield f"Medians of run {first}, and of others of the same cases. Goal: 0.5 %."
    yield ""
    yield from table(("Run", "Medians", "Largest difference, %", "Of"), rows)
    for name, kept in event_only(runs.raw).items():
        yield f"- {name}: keeps {kept:.3f} (goal: 1.00)"
    yield ""


def compared(once: Mapping[str, OverlapRow], again: Iterable[OverlapRow]) -> Iterator[tuple[float, str, str]]:
    """Differences of medians as shares, each with its case and side."""
    for row in again:
        for side in ("alone", "together", "mover_alone", "mover_together"):
            before, after = getattr(once.get(row.point), side, None), getattr(row, side)
            if before is not None and after is not None:
                yield abs(after / before - 1), row.point, side.replace("_", " ")


def event_only(raw: Raw) -> dict[str, float]:
    """What a kernel keeps beside a load that only asks whether an event has come."""
    rates: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for line in raw.lines("controls"):
        if line.get("run") == "" and line["record"]["status"] != "failed":
            for phase in line["record"]["phases"]:
                rates[line["point"]][phase["phase"]].append(phase["comp"]["rate"])
    medians = {
        name: {phase: statistics.median(values) for phase, values in phases.items()}
        for name, phases in rates.items()
    }
    # The rate of a chain is the time of a launch.
    return {
        name: one["A"] / one["AB"] if name.startswith("chain") else one["AB"] / one["A"]
        for name, one in medians.items()
    }


def published(runs: Runs) -> Lines:
    """What victims keep beside each mover, and the published figures of one H200 NVL where there are any."""
    yield "## Beside copy engines, SMs that copy, and idle SMs"
    yield ""
    yield "Percent kept; k SMs are held in pairs, and products beside them are planned for the others. In"
    yield "brackets: one H200 NVL (harshanavkis/loom-motivation-experiments, m3-sm-share/gpu-interference)."
    yield ""
    with open(PUBLISHED, encoding="ascii") as file:
        known = {_key(row): float(row["kept"]) for row in csv.DictReader(file)}
    cells: dict[tuple[str, str], dict[int, str]] = defaultdict(dict)
    for row in runs.overlap("published", "chain"):
        theirs = known.get((row.victim, row.mover, row.sms, row.pace_mb_s))
        beside = "" if theirs is None else f" ({percent(theirs)})"
        cells[row.victim, row.mover_label][row.sms] = f"{share(row.kept)}{beside}"
    sms = sorted({one for of in cells.values() for one in of if one})
    heads = ("Victim", "Beside", "copy engine", *(f"k = {one}" for one in sms))
    yield from table(heads, ((*key, *(of.get(one, "-") for one in (0, *sms))) for key, of in cells.items()))


def _key(row: Mapping[str, str]) -> tuple[str, str, int, float]:
    """A published cell as rows of a run name it; of the two products, that of the run."""
    mover = row["direction"] if row["mover"] == "copy" else row["mover"]
    mover = f"sm_{row['direction']}" if row["mover"] == "sm_copy" else mover
    victim = row["victim"] if row["shape"] in ("", "x".join(map(str, FITTED[0]))) else row["shape"]
    return victim, mover, int(row["sms"] or 0), float(row["pace_mb_s"] or 0)


def host(runs: Runs) -> Lines:
    """Copies beside cores and messages; a model of the host, and what it predicts of other runs."""
    yield "## Copies beside computing cores and messages"
    yield ""
    rows = []
    for row in runs.copies("copies", "copies-messages"):
        kept = {stream: of.get("AB") or of.get("BC") for stream, of in row.kept.items()}
        shares = (share(kept.get(stream)) for stream in ("copies", "cores", "messages"))
        rows.append((row.direction, row.node, row.kernel, row.n, *shares))
    yield from table(("Copies", "Node", "Kernel", "n", "Copies keep", "Cores keep", "Messages keep"), rows)
    yield "## The memory of the host"
    yield ""
    if reason := runs.fit("host.json", "model", "copies"):
        yield from (reason, "")
        return
    for name in runs.there("placement", "cores", "copies"):
        model = str(runs.folder / "host.json")
        text = elbowroom("evaluate", str(runs.folder / name), model, check=False)
        yield from (f"A model of `model` and `copies` on `{name}` (`elbowroom evaluate`):", "", "```text")
        yield from (line.rstrip() for line in text.rstrip().splitlines()[:20])
        yield from ("```", "")


def products(runs: Runs) -> Lines:
    """Products that a model was fitted to, others that it predicts, and advice beside what was measured."""
    yield "## Products that a model has not seen"
    yield ""
    [part] = [part for part in runs.raw.plan["parts"] if part["name"] == "products"]
    names = list(part["runs"])
    half = len(names) // 2
    if reason := runs.fit("products.json", *names[:half]):
        yield reason
        return
    model = str(runs.folder / "products.json")
    rows = []
    for name in runs.there(*names[half:]):
        shape = part["runs"][name]["plan"]["gemm"]
        lines = json.loads(elbowroom("evaluate", str(runs.folder / name), model, "--json"))["lines"]
        longer = [one for moved in BYTES if (one := excess(runs, name, model, shape, moved)) is not None]
        worst = percent(max(longer, default=None))
        rows.append(("x".join(map(str, shape)), percent(mean_errors(lines)), worst))
    sizes = ", ".join(f"{moved / 1e9:g}" for moved in BYTES)
    yield f"Fitted to {len(runs.there(*names[:half]))} products. *Longer*: the step with the advised way to"
    yield f"move bytes, compared with the best of the measured ones, for {sizes} GB. Goals: 8 % and 1 %."
    yield ""
    yield from table(("Product", "Mean error, %", "Longer, at most, %"), rows)


def excess(runs: Runs, name: str, model: str, shape: Sequence[int], moved: float) -> float | None:
    """How much longer the advised step takes than the best one, by what was measured of both; None where the
    advised way was not.
    """
    seconds = {}
    for row in runs.overlap(name):
        rates = [row.alone, row.together, row.mover_alone, row.mover_together]
        known = [rate for rate in rates if rate is not None]
        if row.mover in ("d2d", "sm_hbm") and len(known) == len(rates):
            seconds["copy" if row.mover == "d2d" else "sm_copy", row.sms] = overlapped_seconds(
                STEP_S, moved, *known
            )
    sms = sorted({sms for _, sms in seconds if sms}) or [1]
    job = runs.folder / "job.toml"
    job.write_text(
        f'[gpu]\nvictim = "gemm"\nshape = {list(shape)}\nseconds = {STEP_S}\nbytes = {moved}\n'
        f'moves = "d2d"\nways = ["copy", "sm_copy"]\nsms = {sms}\n'
    )
    advised = json.loads(elbowroom("advise", model, "--job", str(job), "--json"))["advised"]["setup"]
    chosen = seconds.get((advised["way"], advised["sms"] if advised["way"] == "sm_copy" else 0))
    return None if chosen is None else chosen / min(seconds.values()) - 1


def kind_of(device: str | None) -> str:
    """The name of a device in a file's name."""
    return re.sub(r"[^a-z0-9]+", "-", (device or "no-gpu").lower().replace("nvidia", "")).strip("-")


def main(folder: str) -> int:
    """Writes run folders and models below OUT/runs, and the page: docs/measured/device-KIND.md, beside which
    the archive is kept in machines/measured/; of a rehearsal OUT/device-stand-in.md.
    """
    out = Path(folder)
    if not (out / "raw").exists():
        unpack(out / "device.tar.gz", out)
    summary = json.loads((out / "summary.json").read_text())
    raw = Raw.read(out / "raw")
    runs = Runs(raw, out / "runs", write_runs(raw, out / "runs"))
    kind = kind_of(summary["device"])
    lines = [f"# What was measured on {summary['device'] or 'a host without a GPU'}", ""]
    lines += [*facts(raw, summary), *controls(runs), *published(runs), *host(runs), *products(runs)]
    page = (out if summary["stand_in"] else MEASURED) / f"device-{kind}.md"
    page.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")
    if not summary["stand_in"] and (out / "device.tar.gz").exists():
        KEPT.mkdir(exist_ok=True)
        shutil.copyfile(out / "device.tar.gz", KEPT / f"{kind}.tar.gz")
    print(page)
    return 0
