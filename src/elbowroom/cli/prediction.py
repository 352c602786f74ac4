"""`elbowroom predict`: what a model says of situations and of loads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from elbowroom import api
from elbowroom.cli.console import console, new_table, print_json, print_wrapped
from elbowroom.cli.gpu_prediction import asked, gpu_options, predict_cases
from elbowroom.cli.options import FIGURE, command, json_option
from elbowroom.cli.run_options import MODEL
from elbowroom.errors import UsageError
from elbowroom.quantities import format_size, number, parse_size, plural
from elbowroom.verbs import model_tables
from elbowroom.verbs.model_tables import print_flags, shape_line, span

if TYPE_CHECKING:
    from pathlib import Path

    from elbowroom.verbs.model_file import LoadPrediction, Model, Prediction


_model = click.option(
    "--model",
    "name",
    type=MODEL,
    help="Default: flow if it was fitted; threshold for a published machine.",
)


def _bytes(text: str | None) -> int | None:
    return None if text is None else parse_size(text, "size")


@command()
@click.argument("source", metavar="M.json|NAME")
@click.option(
    "--cores", type=int, metavar="N", help="Computing cores of the first socket; default: every number."
)
@click.option("--cores-other", type=int, default=0, metavar="M", help="Computing cores of the second socket.")
@click.option("--comp-node", type=int, metavar="NODE", help="NUMA node of the computation's data.")
@click.option("--comm-node", type=int, metavar="NODE", help="NUMA node of the message buffers.")
@click.option("--all", "everything", is_flag=True, help="Predict all placements (the default without nodes).")
@_model
@click.option("--faithful", is_flag=True, help="Use the thesis' equations exactly as printed (threshold).")
@click.option("--size", metavar="SIZE", help="Message size, if the model knows several: 1MiB.")
@click.option("--intensity", type=float, metavar="I", help="Arithmetic intensity of the computation, flop/B.")
@click.option(
    "--direction",
    type=click.Choice(["receive", "send", "both"]),
    help="Direction of the messages; default: receive.",
)
@click.option("--comm-threads", type=int, metavar="K", help="Number of communication threads; default: 1.")
@click.option(
    "--group",
    multiple=True,
    metavar="S:N@NODE",
    help="N more computing cores of socket S with data on that node.",
)
@click.option(
    "--copy",
    multiple=True,
    metavar="MB/s@NODE",
    help="Copy of an accelerator, with this bandwidth; d2h@NODE: with that of its model.",
)
@click.option("--load", metavar="LOAD.toml", help="Read the load from a file (`elbowroom help predict`).")
@gpu_options
@click.option(
    "-o",
    "--out",
    type=FIGURE,
    metavar="FIGURE",
    help="Draw the curves over the number of cores: .png or .svg.",
)
@click.option(
    "--stacked", is_flag=True, help="With -o: stack both bandwidths, with the model's named points."
)
@json_option
def predict(source: str, as_json: bool, **options: Any) -> int:
    """Predict bandwidths alone and together in MB/s, with 90 % intervals.

    The model is a fitted M.json, or a machine of Swartvagher's thesis: billy, bora, dahu, diablo, grvingt,
    henri, henrisubnuma, occigen, pyxis. NUMA nodes are numbered from 0, starting with those of the first
    socket, where the computing cores are.
    """
    if cases := asked(options):
        return predict_cases(api.load_model(source), cases, as_json)
    if is_load(options):
        return _predict_load(source, as_json, options)
    _check_nodes(options)
    model = api.load_model(source)
    chosen = {"model": options["name"], "faithful": options["faithful"], "size": _bytes(options["size"])}
    # Only the threshold model has a faithful mode: asking for that is asking for it.
    if options["faithful"] and options["name"] is None:
        chosen["model"] = "threshold"
    predictions = model.curves(
        n=options["cores"],
        n_other=options["cores_other"],
        comp_node=options["comp_node"],
        comm_node=options["comm_node"],
        **chosen,
    )
    name = model.name(chosen["model"])
    files = _figure(model, predictions, options)
    single = options["cores"] is not None and options["comp_node"] is not None
    if as_json:
        print_json(
            api.predictions.situation_document(
                model,
                name,
                predictions,
                faithful=chosen["faithful"],
                size=chosen["size"],
                files=files,
                single=single,
            )
        )
    elif single:
        model_tables.print_prediction(model, name, predictions[0])
    else:
        model_tables.print_predictions(model, name, predictions)
    if not as_json:
        for file in files:
            click.echo(str(file))
    return 0


def _predict_load(source: str, as_json: bool, options: dict[str, Any]) -> int:
    model = api.load_model(source)
    load = load_from(options, model)
    name = model.name(options["name"])
    prediction = model.predict_load(load, model=name)
    if as_json:
        print_json(api.predictions.load_document(model, name, prediction))
    else:
        print_load(model, name, prediction)
    return 0


def _check_nodes(options: dict[str, Any]) -> None:
    nodes = [options["comp_node"], options["comm_node"]]
    if options["everything"] and nodes != [None, None]:
        raise UsageError(
            "cannot be combined with nodes", field="all", hint="leave out --comp-node and --comm-node"
        )
    if nodes.count(None) == 1:
        missing = "comp_node" if nodes[0] is None else "comm_node"
        raise UsageError(
            "is needed with the other node", field=missing, hint="give both nodes, or --all placements"
        )
    if options["cores_other"] and options["cores"] is None:
        raise UsageError(
            "is only valid with --cores",
            field="cores_other",
            value=options["cores_other"],
            hint="add --cores N",
        )
    if options["stacked"] and options["out"] is None:
        raise UsageError("needs a file", field="stacked", hint="add -o FIGURE.png")


def _figure(model: Model, predictions: list[Prediction], options: dict[str, Any]) -> list[Path]:
    """The figure asked for; panels go over all n, whatever --cores is."""
    if options["out"] is None:
        return []
    if options["stacked"]:
        node = options["comp_node"] or 0
        return [api.save_figure(model.stacked(node, faithful=options["faithful"]), options["out"])]
    if options["cores"] is not None:
        raise UsageError("a figure goes over all n", field="cores", hint="leave out --cores")
    if options["cores_other"]:
        raise UsageError(
            "a figure shows cores of the first socket", field="cores_other", hint="leave it out, or -o"
        )
    return [api.save_panels(model, model.panels(predictions), options["out"])]


BEYOND = ("intensity", "direction", "comm_threads", "group", "copy", "load")
"""Options that only a load knows."""

MESSAGES = ("direction", "comm_threads", "size")


def is_load(options: dict[str, Any]) -> bool:
    """Whether the options ask for a load and not for situations."""
    return any(options[name] not in (None, ()) for name in BEYOND)


def load_from(options: dict[str, Any], model: Model) -> api.models.Load:
    """The load that the options tell; UsageError where they contradict each other. `model` knows the rates of
    an accelerator's copies.
    """
    _check_figure(options)
    if options["load"] is not None:
        others = [*BEYOND[:-1], "size", "cores", "comp_node", "comm_node"]
        others = [name for name in others if options[name] not in (None, ())]
        others += ["cores_other"] if options["cores_other"] else []
        if others:
            raise UsageError("is in the file", field=others[0], hint="leave it out, or leave out --load")
        return api.read_load(options["load"])
    intensity = 0.0 if options["intensity"] is None else options["intensity"]
    groups = [
        *_placed(options, intensity),
        *(api.models.parse_group(text, intensity) for text in options["group"]),
    ]
    if options["intensity"] is not None and not groups:
        raise UsageError(
            "is only valid with computing cores", field="intensity", hint="add --cores N --comp-node NODE"
        )
    messages = None
    if options["comm_node"] is not None:
        messages = api.models.Messages(
            node=options["comm_node"],
            direction=options["direction"] or "receive",
            size=None if options["size"] is None else parse_size(options["size"], "size"),
            threads=1 if options["comm_threads"] is None else options["comm_threads"],
        )
    else:
        for name in MESSAGES:
            if options[name] is not None:
                raise UsageError("is only valid with messages", field=name, hint="add --comm-node NODE")
    return api.models.Load(
        computing=tuple(groups),
        messages=messages,
        copies=tuple(api.gpu_models.copy_of(model, text) for text in options["copy"]),
    )


def _check_figure(options: dict[str, Any]) -> None:
    for name in ("out", "stacked", "everything", "faithful"):
        if options[name]:
            field = "all" if name == "everything" else name
            raise UsageError("cannot be combined with a load", field=field, hint="leave it out")


def _placed(options: dict[str, Any], intensity: float) -> list[api.models.Computing]:
    """The groups of --cores, --cores-other and --comp-node."""
    counts = ((0, options["cores"] or 0), (1, options["cores_other"]))
    groups = [(socket, count) for socket, count in counts if count]
    if groups and options["comp_node"] is None:
        raise UsageError("is needed with --cores", field="comp_node", hint="add --comp-node NODE")
    if options["comp_node"] is not None and not groups:
        raise UsageError("is needed with --comp-node", field="cores", hint="add --cores N")
    return [
        api.models.Computing(socket=socket, node=options["comp_node"], count=count, intensity=intensity)
        for socket, count in groups
    ]


def print_load(model: Model, name: str, prediction: LoadPrediction) -> None:
    """A line for each group, for the messages and for each copy: alone and together."""
    print_wrapped(shape_line(model.machine), style="bold")
    print_wrapped(f"{name}: {words(model, prediction.load)}")
    print()
    table = new_table(
        ("MB/s", "wrap"),
        ("alone", "right"),
        ("90 %", ""),
        ("together", "right"),
        ("90 %", ""),
        ("kept", "right"),
    )
    both = (
        ("computation", prediction.load.computing, prediction.comp_alone, prediction.comp_together),
        ("communication", prediction.load.messages, prediction.comm_alone, prediction.comm_together),
    )
    for side, there, alone, together in both:
        if there:
            kept = f"{together.value / alone.value:.2f}" if alone.value else "-"
            table.add_row(
                side, number(alone.value), span(alone), number(together.value), span(together), kept
            )
    if len(prediction.groups) > 1:
        for group, rate in zip(prediction.load.computing, prediction.groups, strict=True):
            table.add_row(
                f"- {group.count} of socket {group.socket} on node {group.node}",
                "", "", number(rate.value), span(rate), "",
            )  # fmt: skip
    for copy, rate in zip(prediction.load.copies, prediction.copies, strict=True):
        kept = f"{rate.value / copy.demand:.2f}"
        table.add_row(
            f"copy, node {copy.node}", number(copy.demand), "", number(rate.value), span(rate), kept
        )
    console().print(table)
    print_flags([prediction])


def words(model: Model, load: api.models.Load) -> str:
    """The load in words."""
    parts = []
    for group in load.computing:
        arithmetic = f" at {group.intensity:g} flop/B" if group.intensity else ""
        cores = f"{plural(group.count, 'core')} of socket {group.socket}"
        parts.append(f"{cores} computing{arithmetic} on data of node {group.node}")
    if load.messages is not None:
        item = load.messages
        way = {"receive": "into", "send": "from", "both": "from and into"}[item.direction]
        size = format_size(item.size if item.size is not None else model.document.calibration.size)
        threads = f", {item.threads} threads" if item.threads > 1 else ""
        parts.append(f"messages of {size} {way} node {item.node}{threads}")
    parts += [f"a copy of {copy.demand:g} MB/s at node {copy.node}" for copy in load.copies]
    return "; ".join(parts)
