"""`predict` for loads: what the options say, and the table of one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from elbowroom.errors import UsageError

if TYPE_CHECKING:
    from elbowroom.api.predicting import Model
    from elbowroom.model.load import Computing, Load, LoadPrediction

BEYOND = ("intensity", "direction", "comm_threads", "group", "copy", "load")
"""Options that only a load knows."""

MESSAGES = ("direction", "comm_threads", "size")


def asked(options: dict[str, Any]) -> bool:
    """Whether the options ask for a load and not for situations."""
    return any(options[name] not in (None, ()) for name in BEYOND)


def load_from(options: dict[str, Any]) -> Load:
    """The load that the options tell; UsageError where they contradict each other."""
    from elbowroom import api
    from elbowroom.model.load import Load, Messages
    from elbowroom.plan.sizes import parse_size
    from elbowroom.predict.load_file import parse_copy, parse_group

    _check_figure(options)
    if options["load"] is not None:
        others = [name for name in (*BEYOND[:-1], "size", "cores", "comp_node", "comm_node") if options[name]]
        others += ["cores_other"] if options["cores_other"] else []
        if others:
            raise UsageError("is in the file", field=others[0], mend="leave it out, or leave out --load")
        return api.read_load(options["load"])
    intensity = 0.0 if options["intensity"] is None else options["intensity"]
    groups = [*_placed(options, intensity), *(parse_group(text, intensity) for text in options["group"])]
    if options["intensity"] is not None and not groups:
        raise UsageError("is of computing cores", field="intensity", mend="add --cores N --comp-node NODE")
    messages = None
    if options["comm_node"] is not None:
        messages = Messages(
            node=options["comm_node"],
            direction=options["direction"] or "receive",
            size=None if options["size"] is None else parse_size(options["size"], "size"),
            threads=1 if options["comm_threads"] is None else options["comm_threads"],
        )
    else:
        for name in MESSAGES:
            if options[name] is not None:
                raise UsageError("is of messages", field=name, mend="add --comm-node NODE")
    return Load(
        computing=tuple(groups), messages=messages, copies=tuple(parse_copy(text) for text in options["copy"])
    )


def _check_figure(options: dict[str, Any]) -> None:
    for name in ("out", "stacked", "everything", "faithful"):
        if options[name]:
            field = "all" if name == "everything" else name
            raise UsageError("goes without loads", field=field, mend="leave it out")


def _placed(options: dict[str, Any], intensity: float) -> list[Computing]:
    """The groups of --cores, --cores-other and --comp-node."""
    from elbowroom.model.load import Computing

    counts = ((0, options["cores"] or 0), (1, options["cores_other"]))
    groups = [(socket, count) for socket, count in counts if count]
    if groups and options["comp_node"] is None:
        raise UsageError("is needed with --cores", field="comp_node", mend="add --comp-node NODE")
    if options["comp_node"] is not None and not groups:
        raise UsageError("is needed with --comp-node", field="cores", mend="add --cores N")
    return [
        Computing(socket=socket, node=options["comp_node"], count=count, intensity=intensity)
        for socket, count in groups
    ]


def object_of(found: LoadPrediction) -> dict[str, Any]:
    """The prediction as plain data for --json, with the load's own tables."""
    import msgspec

    told: dict[str, Any] = msgspec.to_builtins(found)
    return told


def print_load(model: Model, name: str, found: LoadPrediction) -> None:
    """A line for each group, for the messages and for each copy: alone and together."""
    from elbowroom.cli.model_tables import print_flags, shape_line, span
    from elbowroom.cli.tables import _say, _table, console
    from elbowroom.draw.numbers import number

    _say(shape_line(model.machine), style="bold")
    _say(f"{name}: {words(model, found.load)}")
    print()
    table = _table(
        ("MB/s", "wrap"),
        ("alone", "right"),
        ("90 %", ""),
        ("together", "right"),
        ("90 %", ""),
        ("kept", "right"),
    )
    both = (
        ("computation", found.load.computing, found.comp_alone, found.comp_together),
        ("communication", found.load.messages, found.comm_alone, found.comm_together),
    )
    for side, there, alone, together in both:
        if there:
            kept = f"{together.value / alone.value:.2f}" if alone.value else "-"
            table.add_row(
                side, number(alone.value), span(alone), number(together.value), span(together), kept
            )
    if len(found.groups) > 1:
        for group, rate in zip(found.load.computing, found.groups, strict=True):
            table.add_row(
                f"- {group.count} of socket {group.socket} on node {group.node}",
                "", "", number(rate.value), span(rate), "",
            )  # fmt: skip
    for copy, rate in zip(found.load.copies, found.copies, strict=True):
        kept = f"{rate.value / copy.demand:.2f}"
        table.add_row(
            f"copy, node {copy.node}", number(copy.demand), "", number(rate.value), span(rate), kept
        )
    console().print(table)
    print_flags([found])


def words(model: Model, load: Load) -> str:
    """The load in words."""
    from elbowroom.plan.sizes import format_size

    parts = []
    for group in load.computing:
        arithmetic = f" at {group.intensity:g} flop/B" if group.intensity else ""
        cores = f"{group.count} core{'s' if group.count > 1 else ''} of socket {group.socket}"
        parts.append(f"{cores} computing{arithmetic} on data of node {group.node}")
    if load.messages is not None:
        item = load.messages
        way = {"receive": "into", "send": "from", "both": "from and into"}[item.direction]
        size = format_size(item.size if item.size is not None else model.document.calibration.size)
        threads = f", {item.threads} threads" if item.threads > 1 else ""
        parts.append(f"messages of {size} {way} node {item.node}{threads}")
    parts += [f"a copy of {copy.demand:g} MB/s at node {copy.node}" for copy in load.copies]
    return "; ".join(parts)
