"""The console lines of README and of the guide, and what stands in for a reader's own programs, files, hosts
and schedulers where they are typed (tests/bootstrap/typed.py). Needs nothing but Python.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

BUDGET = 20
"""Seconds for lines that measure: `--budget` where the line has none."""


class Line(NamedTuple):
    """A line that a reader types: the page, the line's number on it, the words without a comment, and the
    heading above it.
    """

    page: str
    number: int
    text: str
    heading: str = ""


class StandIn(NamedTuple):
    """`pattern` is replaced by `text`; `what` it stands for."""

    pattern: str
    text: str
    what: str


NOT_TYPED = (
    StandIn(r"^\./elbowroom test$", "", "the tests: they are run by themselves"),
    StandIn(
        r'^(export PATH="\$PWD:\$PATH"|mkdir five-minutes && cd five-minutes)$',
        "",
        "the reader's PATH and folder",
    ),
    StandIn(r"^\./elbowroom install$", "", "Debian packages: typed.sh lets root install them"),
    StandIn(r"^\.elbowroom/venv/bin/python -c ", "", "the checkout's folder"),
    StandIn(r"^(salloc|flux|qsub) (?!.*elbowroom)", "", "a shell in an allocation of a scheduler"),
    StandIn(r"ELBOWROOM_PREBUILT=1|elbowroom-\*\.whl$", "", "a wheel with programs: tests/e2e/test_wheel.py"),
)
"""Lines that are not typed, and why."""

STAND_INS = (
    StandIn(r"^salloc .*?(?=elbowroom)", "", "a scheduler"),
    StandIn(r"^(elbowroom nic measure --ranks 8) --hosts node1,node2",
            r"\1 --nic 50MB/s --ranks-per-node 4", "two hosts"),
    StandIn(r" --hosts node1,node2| --hostfile hosts\.txt", "", "other hosts"),
    StandIn(r"--mpi (/opt/openmpi\S*|mpich)", "--mpi openmpi", "the site's MPI"),
    StandIn(r"runs/RUN\b", "runs/quick", "a run of the reader"),
    StandIn(r"runs/(verify|calibrate)-20260101-120000", r"$(ls -d runs/\1-* | tail -n 1)", "an earlier run"),
    StandIn(r"studies/denis2021", "studies/denis2021 --only 'Fig. 2'", "a study of hours"),
    StandIn(r"^elbowroom study (tan2012|langguth2018)\b", r"elbowroom study \1 --quick", "a study of hours"),
    StandIn(r"--budget (5min|2h)", "--budget 60s", "a budget of minutes or hours"),
    StandIn(r"diffusion solve --config config\.json", "./app", "the reader's program"),
    StandIn(r"^venv/bin/pip install \.$", "venv/bin/pip install $CHECKOUT", "the checkout's folder"),
    StandIn(r"^elbowroom run runtime-overhead --set comp_nodes=every --set comm_cores=0,8,16$",
            "elbowroom run runtime-overhead --set comm_cores=0", "a machine with more cores"),
    StandIn(r"--comm-node 1", "--comm-node 0", "a machine with more nodes"),
    StandIn(r"(taskset -c 0 )?\./(late_rank|stencil) steps=\d+", "./app", "a program of the zoo"),
    StandIn(r"job\.toml --collectives", "collective.toml --collectives", "a job with a collective"),
)  # fmt: skip
"""In order, where the pattern is found."""

UNAVAILABLE = (
    StandIn(r"^elbowroom run gpu(-overlap)?\b(?!.*--machine)", "", "an accelerator"),
    StandIn(
        r"^elbowroom advise M\.json --job \w+\.toml( --collectives \S+)? --verify$",
        "",
        "a model of this machine",
    ),
    StandIn(r"^elbowroom diagnose --from app\.mpiP$", "", "a report of mpiP"),
)
"""Lines that end with exit code 2 and a sentence where this is missing, as on the machine of the test."""


def lines(root: Path) -> Iterator[Line]:
    """Those of README, then those of the pages of the guide."""
    for page in (root / "README.md", *sorted((root / "docs" / "guide").glob("*.md"))):
        inside, heading = False, ""
        for number, text in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
            if text.startswith("```"):
                inside = text == "```console"
            elif inside and text.startswith("$ "):
                yield Line(page.name, number, re.sub(r"\s+# .*", "", text[2:]).strip(), heading)
            elif not inside and text.startswith("#"):
                heading = text.lstrip("# ")


def reason_not_to_type(line: Line) -> str:
    """Why a line is not typed; empty where it is."""
    return next((item.what for item in NOT_TYPED if re.search(item.pattern, line.text)), "")


def unavailable(line: Line) -> str:
    """What the line needs that the machine of the test lacks."""
    return next((item.what for item in UNAVAILABLE if re.search(item.pattern, line.text)), "")


def typed(line: Line, budget: int = BUDGET) -> str:
    """The line with the stand-ins, and with a budget (s) where it measures."""
    text = line.text
    for item in STAND_INS:
        text = re.sub(item.pattern, item.text, text)
    return with_budget(text, budget)


def with_budget(text: str, budget: int) -> str:
    """A line that measures on this machine gets a limit of its time."""
    words = text.split(" -- ")[0].split()
    if words[0].rpartition("/")[2] != "elbowroom" or {"--machine", "--dry-run", "--resume"} & set(words):
        return text
    known = {
        "run": f"--budget {budget}s",
        "study": f"--budget {budget}s",
        "diagnose": "--budget 60s",
        "calibrate": "--points 3",
    }
    option = known.get(words[1] if len(words) > 1 else "", "")
    if not option or "--budget" in words or "--profile" in words:
        return text
    return re.sub(r"^(\S+ \S+)", rf"\1 {option}", text)


def created(line: Line) -> list[str]:
    """Files and folders that the line writes, by its options."""
    own = line.text.split(" -- ")[0]
    return re.findall(r"(?:--out|-o|--run-out|--slurm|--tables|>) (\S+)", own)


def saved_files(page: Path) -> dict[str, str]:
    """The files that a page tells the reader to save: name and text."""
    found = re.findall(r"<!-- file (\S+) -->\n```\w+\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    return dict(found)
