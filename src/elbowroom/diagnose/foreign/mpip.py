"""Reports of mpiP: sections of lines, each with a title between two lines of dashes (mpiP's User Guide).

`MPI Time` has the times of every rank, in seconds; `Callsites` where each call is; `Callsite Time statistics`
times of each call site (ms, verbose reports); `Aggregate Time` those of the twenty longest (ms);
`Aggregate Sent Message Size` their bytes. Rows end at a blank line or the next dashes, and the rank `*`
sums up.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from elbowroom.diagnose.foreign.profile import CallTime, ForeignProfile, RankTime, damaged, number
from elbowroom.errors import UsageError

FORMAT = "mpiP report"
WRITTEN_BY = "mpiP (LD_PRELOAD=libmpiP.so)"
MILLI = 1e-3

_TITLE = re.compile(r"@--- *([^:(]*?)(?: *\([^)]*\))?(?:: *\d+)? *-*$")
_DASHES = re.compile(r"-{20,}$")
_SITE = re.compile(r"^ *(\d+) +(\d+) +(.*?)\s+(?:(\d+) +)?(\S+)(?: +(\S+))? *$")


def is_of(start: bytes) -> bool:
    """Whether a file begins like one."""
    return start.lstrip().startswith((b"@ mpiP", b"@mpiP"))


def part_of(lines: Sequence[str]) -> range | None:
    """The lines of a log from the header of a report to its end; None without one."""
    first = next((at for at, line in enumerate(lines) if is_of(line.encode())), None)
    if first is None:
        return None
    ends = [at for at, line in enumerate(lines) if _TITLE.match(line) and "End of Report" in line]
    stop = max((at + 1 for at in ends if at > first), default=len(lines))
    return range(first, stop + 1 if stop < len(lines) and _DASHES.match(lines[stop]) else stop)


def read(text: str, path: Path) -> ForeignProfile:
    """The profile in a report; UsageError with the line if the report is damaged or not complete."""
    lines = text.splitlines()
    sections = dict(_sections(lines, path))
    if "End of Report" not in sections:
        raise damaged(path, len(lines), "is the last one, and the report has no end", WRITTEN_BY)
    if "MPI Time" not in sections:
        raise damaged(path, 1, "begins a report without the section 'MPI Time'", WRITTEN_BY)
    ranks = _ranks(sections["MPI Time"], path)
    seconds, inside = (sum(getattr(one, name) for one in ranks) for name in ("seconds", "mpi_s"))
    if not seconds:
        line = sections["MPI Time"][0][0]
        raise damaged(path, line, "has no time of the program (AppTime 0): the run was too short", WRITTEN_BY)
    calls, complete = _calls(sections, path)
    notes = [] if complete else ["the report is concise: it has only the twenty call sites that took longest"]
    return ForeignProfile(
        format=FORMAT,
        written_by=WRITTEN_BY,
        seconds=seconds / len(ranks),
        useful=max(0.0, 1 - inside / seconds),
        mpi=min(1.0, inside / seconds),
        ranks=len(ranks),
        by_rank=ranks,
        calls=calls,
        all_calls=complete,
        notes=tuple(notes),
    )


Rows = list[tuple[int, str]]
"""Numbers and texts of a section's lines, its header first."""


def _sections(lines: list[str], path: Path) -> Iterator[tuple[str, Rows]]:
    """Titles and lines of all sections; UsageError for a line before the first that is no header, for two
    reports in one file, and for a section that comes twice.
    """
    title, rows, titles = "", Rows(), set[str]()
    for place, line in enumerate(lines, start=1):
        if line.startswith("@---"):
            heading = _TITLE.match(line)
            if heading is None:
                raise damaged(path, place, "is the title of a section, and has no name", WRITTEN_BY)
            if title:
                yield title, rows
            title, rows = heading[1].strip(), []
            if title in titles:
                raise damaged(path, place, f"begins the section {title!r} a second time", WRITTEN_BY)
            titles.add(title)
        elif line.startswith(("@ mpiP", "@mpiP")) and place > 1 and (title or titles):
            raise damaged(path, place, "begins a second report: give one file for each", WRITTEN_BY)
        elif title and line.strip() and not _DASHES.match(line):
            if title == "End of Report":
                raise damaged(path, place, "is behind the end of the report", WRITTEN_BY)
            rows.append((place, line))
        elif not title and line.strip() and not line.startswith("@") and not _DASHES.match(line):
            raise damaged(path, place, f"is not a line of a header: {line.strip()[:40]!r}", WRITTEN_BY)
    if title:
        yield title, rows


def _ranks(rows: Rows, path: Path) -> tuple[RankTime, ...]:
    times: dict[int, RankTime] = {}
    for place, line in rows[1:]:
        words = line.split()

        def error(what: str, place: int = place) -> UsageError:
            return damaged(path, place, what, WRITTEN_BY)

        if len(words) < 3:
            raise error("has no Task, AppTime and MPITime")
        if words[0] == "*":
            continue
        if not words[0].isdecimal():
            raise error(f"has {words[0]!r} as Task, which is not a rank")
        rank, seconds, inside = (
            int(words[0]),
            number(words[1], error, "AppTime"),
            number(words[2], error, "MPITime"),
        )
        if rank in times:
            raise error(f"has the times of rank {rank} a second time")
        # Three digits are printed.
        if inside > seconds * 1.01:
            raise error(f"has more MPITime ({inside:g} s) than AppTime ({seconds:g} s)")
        times[rank] = RankTime(rank=rank, seconds=seconds, mpi_s=min(inside, seconds))
    if not times:
        raise damaged(path, rows[0][0] if rows else 1, "is followed by no times of ranks", WRITTEN_BY)
    return tuple(times[rank] for rank in sorted(times))


def _calls(sections: dict[str, Rows], path: Path) -> tuple[tuple[CallTime, ...], bool]:
    """The call sites with times, longest first, and whether none is missing."""
    places = _places(sections.get("Callsites", []))
    sent = {words[1]: float(words[3]) for words in _table(sections, "Aggregate Sent Message Size", 4, path)}
    rows: list[tuple[str, str, float, int | None]] = []
    complete = "Callsite Time statistics" in sections
    if complete:
        for words in _table(sections, "Callsite Time statistics", 6, path):
            if words[2] == "*":
                rows.append((words[0], words[1], float(words[3]) * float(words[5]), int(float(words[3]))))
    else:
        for words in _table(sections, "Aggregate Time", 3, path):
            rows.append((words[0], words[1], float(words[2]), None))
    calls = []
    for function, site, time, count in rows:
        caller, file, line = places.get(site, ("", "", None))
        calls.append(
            CallTime(
                function=f"MPI_{function}",
                seconds=time * MILLI,
                calls=count,
                sent=sent.get(site),
                caller=caller,
                file=file,
                line=line,
            )
        )
    return tuple(sorted(calls, key=lambda call: -call.seconds)), complete


def _table(sections: dict[str, Rows], title: str, columns: int, path: Path) -> Iterator[list[str]]:
    """The rows of a table, each with at least so many columns; those behind the first two are numbers or
    `*`.
    """
    for place, line in sections.get(title, [])[1:]:
        words = line.split()

        def error(what: str, place: int = place) -> UsageError:
            return damaged(path, place, what, WRITTEN_BY)

        if len(words) < columns:
            raise error(f"has {len(words)} of the {columns} columns of {title!r}")
        for word in words[2:]:
            if word != "*":
                number(word, error, f"a value of {title!r}")
        yield words


def _places(rows: Rows) -> dict[str, tuple[str, str, int | None]]:
    """Function, file and line of each call site: of the innermost level, which has the call."""
    places: dict[str, tuple[str, str, int | None]] = {}
    for _, line in rows[1:]:
        match = _SITE.match(line)
        if match is None or match[1] in places or match[2] != "0":
            continue
        caller = "" if match[5] == "[unknown]" else match[5]
        places[match[1]] = (caller, match[3].strip(), int(match[4]) if match[4] else None)
    return places
