"""The simulator of single requests: how fast it is, and how well models fitted to few of its runs predict the
rest.

    python benchmarks/simulate.py speed [--repeat 5] [--json]
    python benchmarks/simulate.py models [--machines henri,billy] [--noise 0,1] [--seeds 5] [--processes 2]
    [--json]

`speed`: requests a second of one core, for several loads of one machine; median and best of the repetitions.
`models`: the questions, models and errors of benchmarks/prediction.py on the truth G3, whose law is none of
the models' and which was not used while FLOW was written (docs/reference/simulator.md). Needs a C++ compiler.
"""

from __future__ import annotations

import argparse
import json
import statistics
from itertools import product

import msgspec
import prediction
from command import Command

from elbowroom.launch.executables import simulate
from elbowroom.models import published
from elbowroom.models.load import Computing, Load, Messages
from elbowroom.virtual.machines import of_name
from elbowroom.virtual.request_calibration import scaled
from elbowroom.virtual.request_node import SimulatedNode
from elbowroom.virtual.requests import Moment, experiment, flows_at, machine

MEASURE = 400_000_000  # picoseconds: long enough that starting up does not count


def moments(node: SimulatedNode) -> dict[str, Moment]:
    """Loads of all cores of a socket, and of one."""
    most, far = node.shape.cores_first_socket, node.shape.numa_per_socket

    def moment(count: int, data: int, pattern: str = "N", size: int | None = None) -> Moment:
        flows = flows_at(node, Load(messages=Messages(node=data, size=size)))
        return Moment((Computing(socket=0, node=data, count=count),), flows, (), pattern)

    return {
        "1 core, memset, near": moment(1, 0),
        f"{most // 2} cores, memset, near": moment(most // 2, 0),
        f"{most} cores, memset, near": moment(most, 0),
        f"{most} cores, memset, far": moment(most, far),
        f"{most} cores, loads, near": moment(most, 0, "R"),
        f"{most} cores, stores, near": moment(most, 0, "W"),
        f"{most} cores, memset, near, messages of 4 KiB": moment(most, 0, "N", 4096),
    }


def speed(name: str, repeat: int) -> dict[str, list[float]]:
    """Requests a second of each load, in millions."""
    node = scaled(of_name(name), simulate)
    found = {}
    for text, moment in moments(node).items():
        asked = [{**experiment(node, moment, seed), "measure": MEASURE} for seed in range(1, repeat + 1)]
        seen = simulate(machine(node), asked)
        found[text] = [one.requests / one.seconds / 1e6 for one in seen]
    return found


def show_speed(found: dict[str, list[float]]) -> None:
    print(f"{'millions of requests a second, one core':48}{'median':>8}{'best':>8}")
    for text, values in found.items():
        print(f"{text:48}{statistics.median(values):8.1f}{max(values):8.1f}")


def models(options: argparse.Namespace) -> list[prediction.Score]:
    tasks = [
        prediction.Task(prediction.LINE_BY_LINE, name, noise, seed)
        for name, noise in product(options.machines, options.noise)
        for seed in range(options.seeds if noise > 0 else 1)
    ]
    return prediction.solved(tasks, options.processes)


def arguments() -> argparse.Namespace:
    parser = Command((__doc__ or "").splitlines()[0], smoke="speed --repeat 1")
    commands = parser.add_subparsers(dest="command", required=True, parser_class=argparse.ArgumentParser)
    fast = commands.add_parser("speed")
    fast.add_argument("--machine", default="henri", choices=published.names())
    fast.add_argument("--repeat", type=int, default=5)
    fitted = commands.add_parser("models")
    fitted.add_argument("--machines", type=prediction.names_of, default=list(published.names()))
    fitted.add_argument(
        "--noise", type=lambda text: [float(part) / 100 for part in text.split(",")], default=[0.0, 0.01]
    )
    fitted.add_argument("--seeds", type=int, default=5)
    fitted.add_argument("--processes", type=int, default=2)
    for command in (fast, fitted):
        command.add_argument("--json", action="store_true")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    if options.command == "speed":
        found = speed(options.machine, options.repeat)
        print(json.dumps(found)) if options.json else show_speed(found)
        return
    scores = models(options)
    if options.json:
        print(json.dumps(msgspec.to_builtins(scores)))
        return
    for noise in options.noise:
        chosen = [item for item in scores if item.noise == noise]
        prediction.show(prediction.LINE_BY_LINE, noise, chosen, options.machines)


if __name__ == "__main__":
    main()
