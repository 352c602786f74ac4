"""One trace in four viewers' files, each read again by its own tool: the same events, counts and sums."""

from __future__ import annotations

import json
import re
import resource
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from elbowroom.errors import ElbowroomError
from elbowroom.launch import build
from elbowroom.trace.columns import COUNTER as COUNTS
from elbowroom.trace.columns import TraceColumns
from made_rings import BEGIN, COUNTER, END, EVENT, RECEIVE, SEND, MadeRank

SECOND = 1_000_000_000
ODD = 'sol"ve\\\n\tünïcode'
BIG = 2**63 + 12345
SLOPE = 20  # ppm, of rank 1's clock

# What a file says happened: kind, rank, thread, type; of counters the sum, of messages the bytes.
Seen = Counter[tuple[str, int, int, str]]


class Said:
    """Events by kind, rank, thread and type; sums of counters' values and of messages' bytes; events lost."""

    def __init__(self) -> None:
        self.events: Seen = Counter()
        self.values = self.bytes = self.messages = self.lost = 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Said) and vars(self) == vars(other)

    def __repr__(self) -> str:
        return repr(vars(self))


@pytest.fixture(scope="module")
def reader() -> Path:
    try:
        return build.trace_reader()
    except ElbowroomError as error:
        pytest.skip(f"the reader of traces cannot be built here: {error}")


def local(rank: int, time: int) -> int:
    """What rank's clock shows at `time` of the reference, ns."""
    return time if rank == 0 else time + 7 * SECOND + time * SLOPE // 1_000_000


def made(folder: Path) -> None:
    """Four ranks, the third without files, the last with a thread without events; all that is odd."""
    for number in (0, 1, 3):
        rank = MadeRank(number, 4)
        solve = rank.type(ODD, "task", ("block", "task", None))
        mark = rank.type("", "note", (None, "a b", "Value"))
        power = rank.type("power", "energy", ("socket", None, None))
        send, receive = rank.type("MPI_Send", "mpi"), rank.type("MPI_Recv", "mpi")
        thread = rank.thread(b"worker \xff 1")
        rank.sync(local(number, SECOND), SECOND - local(number, SECOND), 2)
        rank.sync(local(number, 3 * SECOND), 3 * SECOND - local(number, 3 * SECOND), 2)

        def add(time: int, *event: int, rank: MadeRank = rank, thread: int = thread) -> None:
            rank.add(thread, local(rank.rank, SECOND + time), *event)

        add(5, solve, END, 0, 99)  # without a begin
        for task in range(3):
            add(10 + task, solve, BEGIN, task, task + BIG)
            rank.text(thread, solve, task + BIG, b'task "%d" \xc3\xa9\xff' % task)
        add(20, solve, END, 0, BIG)  # the outermost first
        add(22, solve, END, 2, 2 + BIG)
        other = 1 - number if number < 2 else 2
        message = (3, (5 << 32) | other, 4096)
        if number == 0:
            add(24, receive, RECEIVE, *message)  # 6 us before it left: more than the clocks' errors
        add(30, mark, EVENT, 0, 2**64 - 1, 2**53 + 1)
        rank.text(thread, mark, 2**64 - 1, b"said \n of it")
        for time, value in enumerate((-5, 7, 2**40)):
            add(40 + time, power, COUNTER, 1, value)
        add(50, mark, BEGIN, 0, 1)  # without an end
        add(6060, send, SEND, *message)
        if number > 0:
            add(6100, receive, RECEIVE, *message)
        if number == 3:
            rank.thread(b"idle")
        if number == 1:
            rank.lost[thread] = 3
            rank.threads[thread][1].extend(_filling(rank, mark, 64 - len(rank.threads[thread][1])))
        rank.write(folder)


def _filling(rank: MadeRank, mark: int, count: int) -> list[bytes]:
    """Events until a ring of 64 is full."""
    spare = MadeRank(rank.rank, 4)
    spare.thread()
    for i in range(count):
        spare.add(0, local(rank.rank, SECOND + 7000 + i), mark, EVENT)
    return spare.threads[0][1]


@pytest.fixture(scope="module")
def folder(reader: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    trace = tmp_path_factory.mktemp("outputs") / "trace"
    made(trace)
    return trace


def merged(reader: Path, trace: Path, to: str) -> tuple[Path, dict[str, Any]]:
    out = trace.parent / f"out.{to}"
    if out.is_dir():
        shutil.rmtree(out)
    done = subprocess.run(
        [reader, "merge", trace, "--to", to, "-o", out], capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 3), done.stderr
    return out, json.loads(done.stdout)


def run(*words: str | Path) -> str:
    if shutil.which(words[0]) is None:
        pytest.skip(f"{words[0]} is not installed")
    return subprocess.run(words, capture_output=True, check=True, timeout=60).stdout.decode()


NAMES = ("event", "begin", "end", "counter", "send", "receive")


@pytest.fixture(scope="module")
def expected(reader: Path, folder: Path) -> Said:
    """What the merge itself delivers."""
    out, summary = merged(reader, folder, "columns")
    said = Said()
    with open(out, "rb") as stream:
        columns = TraceColumns(stream)
        job = columns.job
        for tag, block in columns.blocks():
            for one in block:
                if tag == "events":
                    thread = job.threads[one["thread"]]
                    name = job.types[one["type"]].name
                    said.events[NAMES[one["kind"]], thread.rank, thread.thread, name] += 1
                    if one["kind"] == COUNTS:
                        said.values += int(one["first"].astype("int64"))
                elif tag == "messages":
                    said.messages += 1
                    said.bytes += int(one["bytes"])
                else:
                    said.lost += int(one["lost"])
    assert sum(said.events.values()) == summary["kept"]
    assert (said.messages, said.lost) == (summary["messages"], summary["lost"])
    assert summary["tachyons"] == 1
    return said


def _kind(words: dict[str, Any], phase: str) -> str:
    """What an event without a length was, by what is said of it."""
    return str(words.get("unpaired", phase))


def of_chrome(path: Path) -> Said:
    said = Said()
    events = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
    ranks: dict[int, int] = {}
    rows: dict[tuple[int, int], tuple[int, int]] = {}
    sizes: dict[int, list[int]] = {}
    for one in events:
        if one.get("name") == "process_sort_index":
            ranks[one["pid"]] = one["args"]["sort_index"]
        if one.get("name") == "thread_sort_index":
            rows[one["pid"], one["tid"]] = (ranks[one["pid"]], one["args"]["sort_index"] // 2)
    for one in events:
        words = one.get("args", {})
        row = rows.get((one["pid"], one["tid"]), (-1, -1))
        name = ODD if one.get("cat") == "task" else one.get("name", "")
        if one["ph"] == "B" and "continued" not in words:
            said.events["begin", *row, name] += 1
        elif one["ph"] == "E" and "interrupted" not in words:
            said.events["end", *row, name] += 1
        elif one["ph"] == "i":
            said.events[_kind(words, "event"), *row, name] += 1
        elif one["ph"] == "C":
            said.events["counter", *row, name] += 1
            said.values += words["value"]
        elif one["ph"] == "X" and "lost" in words:
            said.lost += words["lost"]
        elif one["ph"] == "X":
            said.events["send" if "to" in words else "receive", *row, name] += 1
        elif one["ph"] == "f":
            said.messages += 1
        if "message" in words:
            sizes.setdefault(words["message"], []).append(words["bytes"])
    said.bytes = sum(both[0] for both in sizes.values() if len(both) == 2)
    return said


TYPES = {1: "begin", 2: "end", 3: "event", 4: "counter"}  # TrackEvent.Type


def of_perfetto(path: Path) -> Said:
    trace_pb2 = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    trace = trace_pb2.Trace.FromString(path.read_bytes())
    said = Said()
    iids: dict[str, dict[int, str]] = {
        "event_names": {},
        "event_categories": {},
        "debug_annotation_names": {},
    }
    ranks: dict[int, int] = {}
    rows: dict[int, tuple[int, int]] = {}
    flows: dict[int, list[tuple[str, int]]] = {}
    slices: dict[int, list[str]] = {}
    gaps: set[int] = set()
    for packet in trace.packet:
        for kind, known in iids.items():
            known.update({one.iid: one.name for one in getattr(packet.interned_data, kind)})
        track = packet.track_descriptor
        if track.HasField("process"):
            ranks[track.uuid] = track.process.legacy_sort_index
        elif track.HasField("thread"):
            rows[track.uuid] = (ranks[track.parent_uuid], track.thread.legacy_sort_index)
        elif track.parent_uuid:
            rows[track.uuid] = rows[track.parent_uuid]
        if not packet.HasField("track_event") or packet.track_event.track_uuid not in rows:
            continue
        event = packet.track_event
        row = rows[event.track_uuid]
        words = {
            iids["debug_annotation_names"][one.name_iid]: getattr(one, one.WhichOneof("value"))
            for one in event.debug_annotations
        }
        names = [iids["event_categories"][iid] for iid in event.category_iids]
        name = ODD if names == ["task"] else iids["event_names"].get(event.name_iid, event.name)
        kind = TYPES[event.type]
        if "lost" in words:
            said.lost += words["lost"]
            gaps.add(event.track_uuid)
        elif event.track_uuid in gaps:
            assert kind == "end"
        elif "bytes" in words:
            kind = "send" if "to" in words else "receive"
            said.events[kind, *row, name] += 1
            if "message" not in words:
                assert words["unmatched"]
                continue
            flows.setdefault(words["message"], []).append((kind, words["bytes"]))
            assert list(event.flow_ids) + list(event.terminating_flow_ids) == [words["message"]]
            assert bool(event.terminating_flow_ids) == (len(flows[words["message"]]) == 2)
        elif kind == "end":
            said.events["end", *row, slices[event.track_uuid].pop()] += "interrupted" not in words
        else:
            if kind == "begin":
                slices.setdefault(event.track_uuid, []).append(name)
            said.events[_kind(words, kind), *row, name] += "continued" not in words
            said.values += event.counter_value
    said.messages = sum(len(ends) == 2 for ends in flows.values())
    said.bytes = sum(ends[0][1] for ends in flows.values() if len(ends) == 2)
    return said


def of_paje(path: Path) -> Said:
    said = Said()
    names = {"sol've\\  ünïcode": ODD, "-": "", "power socket 1": "power"}
    names |= {name: name for name in ("MPI_Send", "MPI_Recv", "power")}
    aliases = dict(re.findall(r'^5 (s\d+) S "(.*)" "[0-9. ]*"$', path.read_text(encoding="utf-8"), re.M))
    for line in run("pj_dump", "-u", "-l", "9", path).splitlines():
        kind, container, type_, *rest = line.split(", ")
        row = (
            (int(found[1]), int(found[2]))
            if (found := re.match(r"rank (\d+) thread (\d+)", container))
            else None
        )
        if row is None and kind != "Link":
            continue
        if kind == "State":
            said.events["begin", *row, names[aliases[rest[5]]]] += "continued" not in rest[-1]
        elif kind == "Variable":
            said.events["counter", *row, names[type_]] += 1
            said.values += int(float(rest[3]))
        elif kind == "Link" and "unmatched messages" not in line:
            said.messages += 1
            said.bytes += int(rest[-1])
        elif kind == "Event" and type_ == "lost":
            said.lost += int(rest[-1])
        elif kind == "Event" and type_ == "end of a message":
            said.events[rest[2], *row, names[rest[1]]] += 1
        elif kind == "Event":
            kind = "event" if rest[-1] == "-" else rest[-1].removeprefix("unpaired_")
            said.events[kind, *row, names[rest[1]]] += 1
    said.events += _paje_ends(path, names, aliases)
    return said


def _paje_ends(path: Path, names: dict[str, str], aliases: dict[str, str]) -> Seen:
    """What pj_dump does not tell from the end of the trace: ends that were recorded."""
    ends: Seen = Counter()
    text = path.read_text(encoding="utf-8")
    rows = {
        alias: (int(rank), int(thread))
        for alias, rank, thread in re.findall(r'^6 \S+ (t\d+) T r\d+ "rank (\d+) thread (\d+)', text, re.M)
    }
    states: dict[str, list[str]] = {}
    for definition, container, rest in re.findall(r"^(\d+) \S+ S (t\d+)(.*)$", text, re.M):
        if definition == "8":
            ends["end", *rows[container], states[container].pop()] += 1
            continue
        name = names[aliases[re.findall(r" (s\d+) ", rest)[-1]]]
        states.setdefault(container, []).append(name)
        # What is begun again was not ended.
        ends["end", *rows[container], name] -= rest.endswith("continued")
    return ends


def _regions(text: str, strings: dict[str, str]) -> dict[str, tuple[str, bool]]:
    """What type a region is of, and whether it lasts."""
    found = re.findall(r'^REGION +(\d+)  Name: .*?<(\d+)> \(Aka.*?Descr\.: "(.*?)" <', text, re.M | re.S)
    return {
        region: (ODD if about.startswith("task") else strings[name], not about.endswith(", an event"))
        for region, name, about in found
    }


def of_otf2(path: Path) -> Said:
    said = Said()
    text = run("otf2-print", "-A", path / "traces.otf2")
    strings = dict(re.findall(r'^STRING +(\d+)  "(.*?)"$', text, re.M | re.S))
    rows = {}
    ranks = dict(re.findall(r'^LOCATION_GROUP +(\d+)  Name: "rank (\d+)', text, re.M))
    numbers: Counter[str] = Counter()
    for location, group in re.findall(r"^LOCATION +(\d+) .*<(\d+)>$", text, re.M):
        rows[location] = (int(ranks[group]), numbers[group])
        numbers[group] += 1
    assert sorted(numbers.values()) == [1, 1, 1, 2]
    regions = _regions(text, strings)
    sizes: dict[str, list[int]] = {}
    events = text.split("=== Events ===")[1]
    record = r"^([A-Z_]+) +(\d+) +(\d+)  (.*?)\n(?: +ADDITIONAL ATTRIBUTES: (.*?)\n)?(?=[A-Z]|\Z|\n)"
    for kind, location, _, told, attributes in re.findall(record, events, re.M | re.S):
        row = rows[location]
        flags = "".join(re.findall(r'"flags" <\d+>; STRING; "(.*?)"', attributes))
        if kind in ("ENTER", "LEAVE"):
            name, span = regions[re.findall(r"<(\d+)>$", told)[-1]]
            if not span and kind == "ENTER":
                kind = flags.removeprefix("unpaired_").removesuffix(",unmatched")
                said.events[kind or "event", *row, name] += 1
            elif span and not flags:
                said.events["begin" if kind == "ENTER" else "end", *row, name] += 1
        elif kind == "METRIC":
            said.events["counter", *row, "power"] += 1
            said.values += int(re.findall(r"Value: .*; (-?\d+)", told)[0])
        elif kind == "BUFFER_FLUSH":
            said.lost += int(re.findall(r'"lost" <\d+>; UINT64; (\d+)', attributes)[0])
        else:
            type_ = re.findall(r'"type" <\d+>; STRING; "(.*?)"', attributes)[0]
            said.events[{"MPI_SEND": "send", "MPI_RECV": "receive"}[kind], *row, type_] += 1
            number = re.findall(r'"message" <\d+>; UINT64; (\d+)', attributes)[0]
            sizes.setdefault(number, []).append(int(re.findall(r"Length: (\d+)", told)[0]))
    said.messages = sum(len(both) == 2 for both in sizes.values())
    said.bytes = sum(both[0] for both in sizes.values() if len(both) == 2)
    return said


@pytest.mark.parametrize(
    ("to", "read"), [("json", of_chrome), ("pftrace", of_perfetto), ("paje", of_paje), ("otf2", of_otf2)]
)
def test_a_file_says_what_the_merge_delivers(
    to: str, read: Callable[[Path], Said], reader: Path, folder: Path, expected: Said
) -> None:
    out, _ = merged(reader, folder, to)
    assert read(out) == expected


def times_of_merge(reader: Path, folder: Path) -> tuple[dict[tuple[int, int], set[int]], int]:
    """When events were by the merge, ns since the start, by rank and thread; and the start."""
    out, _ = merged(reader, folder, "columns")
    times: dict[tuple[int, int], set[int]] = {}
    with open(out, "rb") as stream:
        columns = TraceColumns(stream)
        for tag, block in columns.blocks():
            for one in block if tag == "events" else ():
                thread = columns.job.threads[one["thread"]]
                times.setdefault((thread.rank, thread.thread), set()).add(int(one["time"]))
    return times, columns.job.start


def test_times_in_json_are_exact(reader: Path, folder: Path) -> None:
    out, _ = merged(reader, folder, "json")
    events = json.loads(out.read_text(encoding="utf-8"), parse_float=Decimal)["traceEvents"]
    told = {int(one["ts"] * 1000) for one in events if "ts" in one and "lost" not in one.get("args", {})}
    times, _ = times_of_merge(reader, folder)
    assert told == set().union(*times.values())


def test_times_that_readers_of_otf2_correct_are_those_of_the_merge_to_the_nanosecond(
    reader: Path, folder: Path
) -> None:
    out, _ = merged(reader, folder, "otf2")
    told: dict[str, set[int]] = {}
    text = run("otf2-print", out / "traces.otf2")
    for location, time in re.findall(r"^(?:ENTER|LEAVE|METRIC|MPI_[A-Z]+) +(\d+) +(\d+)  ", text, re.M):
        told.setdefault(location, set()).add(int(time))
    times, start = times_of_merge(reader, folder)
    for location, thread in {"0": (0, 0), "1": (1, 0), "2": (3, 0)}.items():
        for time in times[thread]:
            assert told[location] & {start + time - 1, start + time, start + time + 1}


def test_raw_times_and_clocks_offsets_are_what_otf2_holds(reader: Path, folder: Path) -> None:
    out, _ = merged(reader, folder, "otf2")
    text = run("otf2-print", "-C", out / "traces.otf2")
    offsets = re.findall(r"^CLOCK_OFFSET +1  Time: (\d+), Offset: ([+-]\d+), StdDev: ([0-9.]+)", text, re.M)
    first, last = (local(1, time) for time in (SECOND, 3 * SECOND))
    assert [int(offset) for _, offset, _ in offsets] == [SECOND - first] * 2 + [3 * SECOND - last] * 2
    assert [int(time) for time, _, _ in offsets[1:3]] == [first, last]
    assert {deviation for _, _, deviation in offsets} == {"1.1547"}  # of +-2 ns


@pytest.mark.parametrize("to", ["json", "pftrace", "paje", "otf2"])
def test_a_trace_without_events_is_a_valid_file(to: str, reader: Path, tmp_path: Path) -> None:
    rank = MadeRank(0, 1)
    rank.type("solve", "task")
    rank.thread(b"main")
    rank.write(tmp_path / "trace")
    out, summary = merged(reader, tmp_path / "trace", to)
    assert summary["events"] == 0
    readers = {"json": of_chrome, "pftrace": of_perfetto, "paje": of_paje}
    if to == "otf2":
        assert "Number of locations            1" in run("otf2-print", "-A", out / "traces.otf2")
    else:
        assert not +readers[to](out).events


@pytest.mark.parametrize("to", ["json", "pftrace", "paje", "otf2"])
def test_a_file_that_cannot_be_written_leaves_nothing(
    to: str, reader: Path, folder: Path, tmp_path: Path
) -> None:
    def refused(out: Path, most: int | None = None) -> str:
        def limit() -> None:
            if most is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))

        done = subprocess.run(
            [reader, "merge", folder, "--to", to, "-o", out],
            capture_output=True,
            text=True,
            check=False,
            preexec_fn=limit,
            restore_signals=False,
        )
        assert done.returncode == 1
        return done.stderr.strip()

    nowhere = tmp_path / "nowhere" / "out"
    assert refused(nowhere) == (
        f"out '{nowhere}': cannot be written (No such file or directory); its parent folder must exist"
    )
    small = tmp_path / "small"
    assert refused(small, 1024).startswith(f"out '{small}': cannot be written (File too large)")
    assert list(tmp_path.iterdir()) == []


def test_an_archive_never_replaces_what_is_there(reader: Path, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("kept")
    done = subprocess.run(
        [reader, "merge", folder, "--to", "otf2", "-o", tmp_path], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr.strip() == (
        f"out '{tmp_path}': cannot be written (File exists); choose another name, or remove it"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
