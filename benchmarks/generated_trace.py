"""A trace in Kineto's JSON of any size, written as a stream: a few steps again and again, with other times.

python benchmarks/generated_trace.py SIZE [--rank N --ranks N] | elbowroom trace overlap -

SIZE as 2GB. A step has kernels, collectives, and the host's operations and launches, about 270 bytes each,
as PyTorch's profiler writes them. The steps are those of tests/made_overlap.py: kernels beside a collective
take 15 % longer.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from command import Command

ROOT = Path(__file__).parents[1]
sys.path += [str(ROOT / "src"), str(ROOT / "tests")]

from elbowroom.quantities import parse_size  # noqa: E402
from made_overlap import COMM, Recipe, Span, make  # noqa: E402

ORIGIN = 1_000_000_000_000
"""us: all times have as many digits before the point, so that the text of a step keeps its length."""
TIME, NUMBER, STEP = 13, 12, 9
"""Digits of a time, of a correlation and of a step in the text of a step."""
_NUMBERS, _STEPS = 10 ** (NUMBER - 1), 10 ** (STEP - 1)


def _events(span: Span, number: int) -> list[dict[str, Any]]:
    """A kernel, the operation that asks for it, and its launch."""
    comm = span.stream == COMM
    more = {
        "External id": number, "queued": 0, "device": span.rank, "context": 1, "stream": span.stream,
        "correlation": number, "registers per thread": 32, "shared memory": 0, "blocks per SM": 1.5,
        "grid": [len(span.name), 1, 1], "block": [128, 1, 1], "est. achieved occupancy %": 50,
    }  # fmt: skip
    host = {"ph": "X", "pid": 4000 + span.rank, "tid": 4001}
    return [
        {**host, "cat": "cpu_op", "name": "c10d::allreduce_" if comm else "aten::linear",
         "ts": round(span.start - 9, 3), "dur": 2.0,
         "args": {"External id": number, "Sequence number": 7, "Fwd thread id": 0, "Record function id": 0}},
        {**host, "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": round(span.start - 8.9, 3),
         "dur": 1.5, "args": {"External id": number, "cbid": 211, "correlation": number}},
        {"ph": "X", "cat": "kernel", "name": span.name, "pid": span.rank, "tid": span.stream,
         "ts": round(span.start, 3), "dur": round(span.duration, 3), "args": more},
    ]  # fmt: skip


class Period:
    """The text of a few steps, and where its times and numbers stand."""

    def __init__(self, rank: int) -> None:
        made = make(Recipe(seed=5 + rank, instances=1200, slowdown=1.15, phases=1))
        events = [one for at, span in enumerate(made.spans) for one in _events(span, at)]
        events += [
            {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{at}", "pid": 4000, "tid": 4001,
             "ts": round(begin, 3), "dur": round(length, 3), "args": {}}
            for _, at, begin, length in made.steps
        ]  # fmt: skip
        events.sort(key=lambda one: one["ts"])
        first = min(one["ts"] for one in events)
        self.length = max(one["ts"] + one["dur"] for one in events) - first + 50.0
        self.count, self.steps, self.numbers = len(events), len(made.steps), len(made.spans)
        texts, fields = bytearray(), []
        for one in events:
            text = json.dumps(one)
            for key, width, base in (
                ("ProfilerStep#", STEP, _STEPS), ('"ts": ', TIME, 0), ('"External id": ', NUMBER, _NUMBERS),
                ('"correlation": ', NUMBER, _NUMBERS),
            ):  # fmt: skip
                if (at := text.find(key)) < 0:
                    continue
                at += len(key)
                end = at
                while text[end].isdigit() or text[end] in ".-":
                    end += 1
                value = float(text[at:end])
                if key == '"ts": ':
                    micro = int(value - first)
                    text = f"{text[:at]}{'0' * width}{value - first - micro:.3f}"[: at + width] + (
                        f"{value - first - micro:.3f}"[1:] + text[end:]
                    )
                    fields.append((len(texts) + at, width, ORIGIN + micro, 0))
                else:
                    text = text[:at] + "0" * width + text[end:]
                    fields.append((len(texts) + at, width, base + int(value), 1 + (width == STEP)))
            texts += text.encode() + b",\n"
        self._text = np.frombuffer(bytes(texts), dtype=np.uint8).copy()
        self._fields = [
            np.array([one for one in fields if one[3] == kind], dtype=np.int64).reshape(-1, 4)
            for kind in range(3)
        ]

    def text(self, number: int) -> bytes:
        """The events of the `number`-th repetition, each with a comma behind it."""
        shifts = (int(number * round(self.length)), number * self.numbers, number * self.steps)
        for fields, shift in zip(self._fields, shifts, strict=True):
            if not len(fields):
                continue
            values, width = fields[:, 2] + shift, int(fields[0, 1])
            for digit in range(width):
                self._text[fields[:, 0] + width - 1 - digit] = 48 + values // 10**digit % 10
        return self._text.tobytes()


def blocks(size: int, rank: int = 0, ranks: int = 1) -> Iterator[bytes]:
    """The text of a trace of at least `size` bytes, block by block."""
    period = Period(rank)
    about = {"backend": "nccl", "rank": rank, "world_size": ranks}
    yield json.dumps({"schemaVersion": 1, "distributedInfo": about})[:-1].encode() + b', "traceEvents": [\n'
    written = number = 0
    while True:
        text = period.text(number)
        written, number = written + len(text), number + 1
        if written >= size:
            yield text[:-2] + b'\n], "traceName": "generated"}\n'
            return
        yield text


def events_in(size: int, rank: int = 0) -> int:
    """How many events `blocks` writes."""
    period = Period(rank)
    return period.count * -(-size // len(period.text(0)))


def main() -> int:
    """Writes a trace to stdout."""
    parser = Command(__doc__, smoke="20kB")
    parser.add_argument("size", type=parse_size)
    parser.add_argument("--rank", type=int, default=0)
    parser.add_argument("--ranks", type=int, default=1)
    asked = parser.parse_args()
    try:
        for block in blocks(asked.size, asked.rank, asked.ranks):
            sys.stdout.buffer.write(block)
    except BrokenPipeError:
        sys.stderr.close()
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
