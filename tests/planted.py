"""Virtual machines with the behaviour that papers describe written into them, and with the opposite.

The numbers are those of the papers; where a paper gives only words, the curve is one that these words fit.
"""

from __future__ import annotations

from pathlib import Path

HENRI = """
name = "{name}"
processor = "2x Intel Xeon Gold 6140 2.3 GHz"
network = "InfiniBand EDR"
origin = "written for a test: {name}"
sockets = 2
cores_per_socket = 18
memory_gb = 96
nic_node = 0
clock_ghz = 2.3
caches = [[1, 32768, 1], [2, 262144, 1], [3, 3145728, 18]]
near_latency_us = {near}
far_latency_us = {far}

[local]
core = 4455
memory = 60000
nic = 10500
kept = 0.9

[remote]
core = 4455
memory = 31000
nic = 10500
kept = 0.7
"""

COPY_TRIAD = ["copy", "triad"]

Effect = dict[str, object]

DENIS2021: list[Effect] = [
    # Table 1 and Figures 4 and 5: latency by where the thread is, bandwidth by where the data is.
    {"of": COPY_TRIAD, "metric": "latency", "thread": "near", "comp": [[1, 1]],
     "comm": [[1, 1], [5, 1], [6, 0.92], [12, 0.72], [35, 0.695]]},
    {"of": COPY_TRIAD, "metric": "latency", "thread": "far", "comp": [[1, 1]],
     "comm": [[1, 1], [21, 1], [22, 0.93], [35, 0.5]]},
    {"of": COPY_TRIAD, "metric": "bandwidth", "data": "near",
     "comm": [[1, 1], [2, 1], [3, 0.93], [35, 0.36]],
     "comp": [[1, 0.95], [3, 0.85], [5, 0.75], [12, 0.9], [35, 0.92]]},
    {"of": COPY_TRIAD, "metric": "bandwidth", "data": "far",
     "comm": [[1, 1], [2, 1], [3, 0.4], [35, 0.35]],
     "comp": [[1, 0.95], [3, 0.85], [5, 0.75], [12, 0.9], [35, 0.92]]},
    # Figure 6: over the message size, with 5 and with 35 computing cores.
    {"of": COPY_TRIAD, "data": "near", "thread": "far", "n": [5], "over": "size",
     "comm": [[4, 1], [32768, 1], [65536, 0.92], [64000000, 0.89]],
     "comp": [[4, 1], [2048, 1], [4096, 0.93], [64000000, 0.75]]},
    {"of": COPY_TRIAD, "data": "near", "thread": "far", "n": [35], "over": "size",
     "comm": [[4, 0.5], [128, 0.5], [64000000, 0.36]],
     "comp": [[4, 1], [2048, 1], [4096, 0.93], [64000000, 0.92]]},
    # Figure 7: up to 6 flop/B.
    {"of": ["triad_cursor"], "metric": "latency", "over": "intensity", "comp": [[1, 1]],
     "comm": [[0.08, 0.5], [4, 0.5], [6, 1]]},
    {"of": ["triad_cursor"], "metric": "bandwidth", "over": "intensity",
     "comm": [[0.08, 0.4], [4, 0.4], [6, 1]], "comp": [[0.08, 0.9], [4, 0.9], [6, 1]]},
    # Sections 3.2 and 3.3: 1.70 to 1.52 us, 9063 to 9097 MB/s; 1.49 to 1.33 us, 135 to 210 ms.
    {"of": ["prime"], "metric": "latency", "comm": [[1, 1.118]], "comp": [[1, 1]]},
    {"of": ["prime"], "metric": "bandwidth", "comm": [[1, 1.0038]], "comp": [[1, 1]]},
    {"of": ["fma"], "comm": [[1, 1.12]], "comp": [[1, 1]], "comp_alone": [[4, 1.0], [20, 0.643]]},
    # Sections 5.2 to 5.4: 38 us more, 2 us more for a remote access; polls.
    {"of": ["overhead"], "over": "size", "added": [[4, 38], [4194304, 38], [64000000, 0]]},
    {"of": ["overhead"], "n": [34], "over": "cursor", "added": [[1, 38], [2, 48], [32, 43], [1000, 38]]},
    {"of": ["overhead"], "data": "near", "thread": "far", "over": "size",
     "added": [[4, 40], [4194304, 40], [64000000, 0]]},
    {"of": ["overhead"], "data": "far", "thread": "near", "over": "size",
     "added": [[4, 40], [4194304, 40], [64000000, 0]]},
    {"of": ["polling"], "over": "cursor", "added": [[2, 1.0], [32, 0.5], [1000, 0.0]]},
    {"of": ["paused"], "added": [[1, 0.0]]},
    # Section 6, Figure 10.
    {"of": ["cg"], "comm": [[1, 1], [35, 0.1]], "comp": [[1, 0.95]], "stalled": [[1, 0.1], [35, 0.7]]},
    {"of": ["gemm"], "comm": [[1, 1], [35, 0.8]], "comp": [[1, 0.98]], "stalled": [[1, 0.05], [35, 0.2]]},
]  # fmt: skip

OPPOSITE: list[Effect] = [
    {"of": COPY_TRIAD, "metric": "latency", "thread": "near", "comm": [[1, 0.4]], "comp": [[1, 0.7]]},
    {"of": COPY_TRIAD, "metric": "latency", "thread": "far", "comm": [[1, 0.8]], "comp": [[1, 0.6]]},
    {"of": COPY_TRIAD, "metric": "bandwidth", "data": "near",
     "comm": [[1, 1], [29, 1], [30, 0.65], [35, 0.6]], "comp": [[1, 0.9], [10, 0.65]]},
    {"of": COPY_TRIAD, "metric": "bandwidth", "data": "far", "comm": [[1, 1], [2, 1], [35, 0.7]],
     "comp": [[1, 1.1], [35, 1.1]]},
    {"of": COPY_TRIAD, "data": "near", "thread": "far", "n": [5], "over": "size",
     "comm": [[4, 1]], "comp": [[4, 1]]},
    {"of": COPY_TRIAD, "data": "near", "thread": "far", "n": [35], "over": "size",
     "comm": [[4, 1]], "comp": [[4, 0.8]]},
    {"of": ["triad_cursor"], "metric": "bandwidth", "over": "intensity",
     "comm": [[0.08, 1], [4, 1], [6, 0.8]], "comp": [[1, 1]]},
    {"of": ["triad_cursor"], "metric": "latency", "over": "intensity",
     "comm": [[0.08, 1], [4, 1], [6, 0.8]], "comp": [[1, 0.9]]},
    {"of": ["prime"], "comm": [[1, 0.8]], "comp": [[1, 1]]},
    {"of": ["fma"], "comm": [[1, 0.8]], "comp": [[1, 1]], "comp_alone": [[4, 0.6], [20, 1.0]]},
    {"of": ["overhead"], "over": "size", "added": [[4, -0.5], [64, 0]]},
    {"of": ["overhead"], "data": "near", "thread": "far", "over": "size", "added": [[4, -0.9], [64, 0]]},
    {"of": ["overhead"], "data": "far", "thread": "near", "over": "size", "added": [[4, -0.9], [64, 0]]},
    {"of": ["polling"], "over": "cursor", "added": [[2, 0.3], [32, 0.6], [1000, 1.0]]},
    {"of": ["paused"], "added": [[1, 0.0]]},
    {"of": ["cg"], "comm": [[1, 0.8], [35, 0.9]], "comp": [[1, 1]], "stalled": [[1, 0.2]]},
    {"of": ["gemm"], "comm": [[1, 0.6], [35, 0.2]], "comp": [[1, 1]], "stalled": [[1, 0.7]]},
]  # fmt: skip

OTHER_OPPOSITE: list[Effect] = [
    # What cannot be the opposite on the same machine.
    {"of": COPY_TRIAD, "data": "near", "thread": "far", "n": [5], "over": "size",
     "comm": [[4, 1], [63, 1], [64, 0.9]], "comp": [[4, 1], [65535, 1], [65536, 0.9]]},
    {"of": COPY_TRIAD, "data": "near", "thread": "far", "n": [35], "over": "size",
     "comm": [[4, 1], [65535, 1], [65536, 0.9]], "comp": [[4, 0.8]]},
    {"of": ["overhead"], "over": "size", "added": [[4, 38], [4194304, 38], [64000000, 1000]]},
    {"of": ["overhead"], "n": [34], "over": "cursor", "added": [[1, 38], [2, 48], [32, 43], [1000, 60]]},
    {"of": ["polling"], "over": "cursor", "added": [[2, 0.3], [32, 0.6], [1000, 1.0]]},
    {"of": ["paused"], "added": [[1, 0.0]]},
]  # fmt: skip

EXCLUSIVE = (
    "with few computing cores STREAM suffers from smaller messages than communication does",
    "with all cores communication suffers from smaller messages than with few cores",
    "StarPU has no other effect on the bandwidth of large messages",
    "the latency is higher when workers poll more often",
    "messages through StarPU take no longer with rare polls than with paused workers",
)
"""Statements that OPPOSITE leaves undecided and OTHER_OPPOSITE refutes."""

RISES = {"L1": [[0, 0], [32768, 8], [4000000, 8]], "L2": [[0, 0], [262144, 6], [4000000, 6]],
         "L3": [[0, 0], [100000, 0], [4000000, 5]]}  # fmt: skip

TAN2012: list[Effect] = [
    # Of 0.45 us: the receiver's averages pass 1 us at 238,400 B and 2 us at 2,337,000 B and scatter widely;
    # the sender's are higher and lie close together.
    {"of": ["receiver"], "over": "bytes", "spread": 0.9, "misses": RISES,
     "comm": [[0, 1], [238400, 0.927], [2337000, 0.464], [4000000, 0.356]]},
    {"of": ["sender"], "over": "bytes", "spread": 0.05, "misses": RISES,
     "comm": [[0, 1], [238400, 0.4], [2337000, 0.24], [4000000, 0.205]]},
    {"of": ["bystanders"], "over": "bytes", "comm": [[0, 1], [32768, 0.8]]},
]  # fmt: skip

TAN2012_OPPOSITE: list[Effect] = [
    {"of": ["receiver"], "over": "bytes", "spread": 0.02, "comm": [[0, 1]],
     "misses": {**RISES, "L1": [[0, 0], [3900000, 8]], "L3": [[0, 5], [4000000, 0]]}},
    {"of": ["sender"], "over": "bytes", "spread": 0.05, "comm": [[0, 1]],
     "misses": {**RISES, "L3": [[0, 1], [400, 5], [4000000, 0]]}},
    {"of": ["bystanders"], "over": "bytes", "comm": [[0, 1]]},
]  # fmt: skip

TAN2012_OTHER_OPPOSITE: list[Effect] = [
    {"of": ["receiver"], "over": "bytes", "spread": 0.02, "comm": [[0, 0.8]]},
    {"of": ["sender"], "over": "bytes", "spread": 0.02, "comm": [[0, 1]]},
]

LANGGUTH2018: list[Effect] = [
    # Cartesius: 5.8 to 2.7 GB/s and 75 to 43 GB/s, at its loss ratios.
    {"of": ["triad"], "comm": [[1, 1.0], [35, 0.4545]], "comp": [[1, 1.0], [35, 0.5814]]},
]

LANGGUTH2018_OPPOSITE: list[Effect] = [{"of": ["triad"], "comm": [[1, 1.0]], "comp": [[1, 1.0]]}]


def toml(value: object) -> str:
    """A value of an effect as TOML."""
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, list):
        return f"[{', '.join(map(toml, value))}]"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {toml(item)}" for key, item in value.items()) + " }"
    return str(value)


def write(path: Path, effects: list[Effect], *, near: float = 1.39, far: float = 1.67) -> Path:
    """A machine like henri with these effects, as a file."""
    parts = [HENRI.format(name=path.stem, near=near, far=far)]
    for effect in effects:
        parts.append("[[effects]]")
        parts += [f"{key} = {toml(value)}" for key, value in effect.items()]
    path.write_text("\n".join(parts) + "\n", encoding="utf-8")
    return path
