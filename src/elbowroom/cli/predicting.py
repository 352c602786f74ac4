"""`fit`, `predict`, `import`: models of how a machine shares its bandwidth, and what they answer."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from elbowroom.cli.commands import _json, group
from elbowroom.cli.output import print_json
from elbowroom.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from elbowroom.api.predicting import Model
    from elbowroom.model.prediction import Prediction

PREDICTION, VERSION = "elbowroom/prediction", 1

_kernel = click.option("--kernel", metavar="KERNEL", help="Computing kernel, where the run has several.")
_MODELS = click.Choice(["threshold", "robust", "flow"])
_model = click.option(
    "--model",
    "name",
    type=_MODELS,
    help="Default: flow where it was fitted; of a published machine threshold.",
)
_size = click.option("--size", metavar="SIZE", help="Message size, where the run has several: 64MB.")


@group.command("import")
@click.argument("path", metavar="CURVES.csv")
@click.option("-o", "--out", metavar="RUN", required=True, help="Folder of the run. Never overwritten.")
@click.option("--kernel", metavar="KERNEL", help="What computed, if not memset_nt.")
@click.option("--size", metavar="SIZE", help="Size of the messages, if not 64MB.")
@_json
def import_(path: str, out: str, kernel: str | None, size: str | None, as_json: bool) -> int:
    """Make a run of curves that were measured with something else (docs/predict.md)."""
    from elbowroom import api
    from elbowroom.cli import tables

    done = api.import_curves(
        path, out, kernel=kernel, size=_bytes(size), command=("elbowroom", *sys.argv[1:])
    )
    if as_json:
        print_json(done.show())
    else:
        tables.print_run(done)
        click.echo(f"run: {done.path}")
    return 0


@group.command()
@click.argument("paths", metavar="RUN [RUN]...", nargs=-1, required=True)
@click.option("-o", "--out", metavar="M.json", help="Default: models/NAME.json in the first run's folder.")
@_kernel
@_size
@_json
def fit(paths: tuple[str, ...], out: str | None, kernel: str | None, size: str | None, as_json: bool) -> int:
    """Fit all models to a run: parameters with intervals, and where not to trust them.

    Several runs of one machine are fitted together: with those of the plans `sizes`, `intensity` and `ring`
    beside one of `model`, FLOW answers for other messages and computations too.
    """
    from elbowroom import api
    from elbowroom.cli import blas, model_tables

    blas.one_thread()
    model = api.fit(paths, out, kernel=kernel, size=_bytes(size))
    if as_json:
        found = {"schema": "elbowroom/fit", "version": VERSION, "file": str(model.path)}
        print_json({**found, "model": model.document})
    else:
        model_tables.print_fit(model)
    return 0


@group.command()
@click.argument("path", metavar="RUN")
@click.argument("source", metavar="M.json|NAME")
@click.option("-o", "--out", metavar="FIGURE", help="Draw measured points and the model: .png or .svg.")
@click.option("--stacked", is_flag=True, help="With -o: what was measured, stacked, with named points.")
@click.option("--comp-node", type=int, default=0, metavar="NODE", help="With --stacked: node of all data.")
@click.option("--model", "name", type=_MODELS, help="With -o: the model to draw; default: the best.")
@_json
def evaluate(path: str, source: str, as_json: bool, **options: Any) -> int:
    """How far models are from a run: mean errors, beside naive ones.

    As Table 6.1 of Swartvagher's thesis: communications and computations, on the placements the threshold
    model is calibrated on (samples) and on the others.
    """
    import msgspec

    from elbowroom import api
    from elbowroom.cli import model_tables

    if options["stacked"] and options["out"] is None:
        raise UsageError("needs a file", field="stacked", mend="add -o FIGURE.png")
    if options["stacked"] and options.get("size") is not None:
        raise UsageError(
            "is drawn for the calibrated message size only", field="stacked", mend="leave out --size"
        )
    found = api.evaluate(path, source)
    files = []
    if options["out"] is not None and options["stacked"]:
        files = [api.save_figure(found.model.stacked(options["comp_node"], found.run), options["out"])]
    elif options["out"] is not None:
        predictions = found.model.curves(model=options["name"])
        files = [api.save_panels(found.model, found.model.panels(predictions, found.run), options["out"])]
    if as_json:
        head = {"schema": "elbowroom/evaluate", "version": VERSION, "run": path, "model": source}
        told = {"notes": found.notes, "published": found.published, "files": [str(file) for file in files]}
        print_json({**head, **msgspec.to_builtins(found.table), **told})
    else:
        model_tables.print_evaluation(found)
        for file in files:
            click.echo(str(file))
    return 0


def _bytes(text: str | None) -> int | None:
    from elbowroom.plan.sizes import parse_size

    return None if text is None else parse_size(text, "size")


@group.command()
@click.argument("source", metavar="M.json|NAME")
@click.option("--cores", type=int, metavar="N", help="Computing cores of the first socket; default: all n.")
@click.option("--cores-other", type=int, default=0, metavar="M", help="Computing cores of the second socket.")
@click.option("--comp-node", type=int, metavar="NODE", help="NUMA node of the computations' data.")
@click.option("--comm-node", type=int, metavar="NODE", help="NUMA node of the communications' data.")
@click.option("--all", "everything", is_flag=True, help="All placements (as without nodes).")
@_model
@click.option("--faithful", is_flag=True, help="The thesis' equations to the letter (threshold).")
@click.option("--size", metavar="SIZE", help="Messages of this size, where the model knows several: 1MiB.")
@click.option("--intensity", type=float, metavar="I", help="Arithmetic intensity of the cores, flop/B.")
@click.option("--direction", type=click.Choice(["receive", "send", "both"]), help="Default: receive.")
@click.option("--comm-threads", type=int, metavar="K", help="Communication threads; default: 1.")
@click.option(
    "--group", multiple=True, metavar="S:N@NODE", help="N more cores of socket S on that node's data."
)
@click.option("--copy", multiple=True, metavar="MB/s@NODE", help="An accelerator's copy of that bandwidth.")
@click.option("--load", metavar="LOAD.toml", help="All that happens at once, from a file (docs/predict.md).")
@click.option("-o", "--out", metavar="FIGURE", help="Draw the curves over n: .png or .svg.")
@click.option("--stacked", is_flag=True, help="With -o: both stacked, with the model's named points.")
@_json
def predict(source: str, as_json: bool, **options: Any) -> int:
    """Predict bandwidths alone and together, with 90 % intervals, MB/s.

    From a fitted M.json, or by the NAME of a machine of Swartvagher's thesis: billy, bora, dahu, diablo,
    grvingt, henri, henrisubnuma, occigen, pyxis. Nodes are counted from 0, those of the first socket (the
    computing cores') first.
    """
    from elbowroom import api
    from elbowroom.cli import loading, model_tables

    if loading.asked(options):
        return _predict_load(source, as_json, options)
    _check_nodes(options)
    model = api.load_model(source)
    chosen = {"model": options["name"], "faithful": options["faithful"], "size": _bytes(options["size"])}
    # Only the threshold model has a faithful mode: asking for that is asking for it.
    if options["faithful"] and options["name"] is None:
        chosen["model"] = "threshold"
    found = model.curves(
        n=options["cores"],
        n_other=options["cores_other"],
        comp_node=options["comp_node"],
        comm_node=options["comm_node"],
        **chosen,
    )
    name = model.name(chosen["model"])
    files = _figure(model, found, options)
    one = options["cores"] is not None and options["comp_node"] is not None
    if as_json:
        print_json(_object(model, name, found, one, files, chosen))
    elif one:
        model_tables.print_prediction(model, name, found[0])
    else:
        model_tables.print_predictions(model, name, found)
    if not as_json:
        for file in files:
            click.echo(str(file))
    return 0


def _predict_load(source: str, as_json: bool, options: dict[str, Any]) -> int:
    from elbowroom import api
    from elbowroom.cli import loading

    load = loading.load_from(options)
    model = api.load_model(source)
    name = model.name(options["name"])
    found = model.predict_load(load, model=name)
    if as_json:
        print_json({**_head(model, name, {}), **loading.object_of(found)})
    else:
        loading.print_load(model, name, found)
    return 0


def _head(model: Model, name: str, asked: dict[str, Any]) -> dict[str, Any]:
    return {
        "schema": PREDICTION,
        "version": VERSION,
        "machine": model.machine.name,
        "model": name,
        **asked,
        "unit": "MB/s",
        "interval": "90 %",
        "origin": model.document.calibration.origin,
    }


def _check_nodes(options: dict[str, Any]) -> None:
    nodes = [options["comp_node"], options["comm_node"]]
    if options["everything"] and nodes != [None, None]:
        raise UsageError("goes without nodes", field="all", mend="leave out --comp-node and --comm-node")
    if nodes.count(None) == 1:
        missing = "comp_node" if nodes[0] is None else "comm_node"
        raise UsageError(
            "is needed with the other node", field=missing, mend="give both nodes, or --all placements"
        )
    if options["stacked"] and options["out"] is None:
        raise UsageError("needs a file", field="stacked", mend="add -o FIGURE.png")


def _figure(model: Model, found: list[Prediction], options: dict[str, Any]) -> list[Path]:
    """The figure asked for; panels go over all n, whatever --cores is."""
    if options["out"] is None:
        return []
    from elbowroom import api

    if options["stacked"]:
        node = options["comp_node"] or 0
        return [api.save_figure(model.stacked(node, faithful=options["faithful"]), options["out"])]
    if options["cores"] is not None:
        raise UsageError("a figure goes over all n", field="cores", mend="leave out --cores")
    if options["cores_other"]:
        raise UsageError(
            "a figure shows cores of the first socket", field="cores_other", mend="leave it out, or -o"
        )
    return [api.save_panels(model, model.panels(found), options["out"])]


def _object(
    model: Model,
    name: str,
    found: list[Prediction],
    one: bool,
    files: list[Path],
    chosen: dict[str, Any],
) -> dict[str, Any]:
    """One situation stands at the top of the object, several in `predictions`."""
    import msgspec

    size = chosen["size"] or model.document.calibration.size
    head = _head(model, name, {"faithful": chosen["faithful"], "size": size})
    head["files"] = [str(file) for file in files]
    told = [{**msgspec.to_builtins(item.situation), **msgspec.to_builtins(item)} for item in found]
    for item in told:
        del item["situation"]
    return {**head, **told[0]} if one else {**head, "predictions": told}
