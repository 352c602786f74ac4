"""`elbowroom profile`: records who communicates when, and shows it."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Any

import click

from elbowroom import api
from elbowroom.cli.console import console, new_table, print_json, print_wrapped
from elbowroom.cli.dry_runs import dry_run_option, show_planned
from elbowroom.cli.nic import nic_options, nic_settings
from elbowroom.cli.options import Group, Output, json_option
from elbowroom.cli.what_if import what_if
from elbowroom.quantities import number
from elbowroom.verbs.declaration import command_of
from elbowroom.verbs.profile_calibrate import CalibrateNic

if TYPE_CHECKING:
    from elbowroom.api.profiles import Profiled

_HELP = ("-h", "--help")


class _Profile(Group):
    """`profile -- CMD` is `profile record -- CMD`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click, with the command's name in front where it is left out."""
        if args and args[0] not in self.commands and args[0] not in _HELP:
            args = ["record", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_Profile)
def profile() -> None:
    """Profile who communicates when: `elbowroom profile -o P -- mpirun -n 4 ./app`."""


@profile.command()
@click.option(
    "-o", "--out", metavar="P", default="profile", show_default=True, help="Folder of the profile; new."
)
@click.option(
    "--records",
    type=int,
    default=1 << 20,
    show_default=True,
    metavar="N",
    help="Records that each process keeps, the latest (32 B each).",
)
@click.option("--mpi", metavar="PREFIX", help="MPI of the program; default: that of its launcher.")
@nic_options
@dry_run_option
@json_option
@click.argument("command", nargs=-1, metavar="-- CMD...", type=click.UNPROCESSED)
def record(command: tuple[str, ...], out: str, dry_run: bool, as_json: bool, **options: Any) -> int:
    """Run CMD and profile its MPI calls; `record` may be left out.

    The exit code is that of CMD. The program is not recompiled.
    """
    settings = {"records": options["records"], "mpi": options["mpi"], "nic": nic_settings(options)}
    if dry_run:
        return show_planned(api.profiles.plan_profile(command, out, **settings), as_json)
    # With --json what the program says is chatter: stdout is for the object.
    stdout = sys.stderr.fileno() if as_json else None
    done = api.record_profile(command, out, stdout=stdout, **settings)
    if as_json:
        print_json(done.document)
    else:
        # stdout is the program's.
        with contextlib.redirect_stdout(sys.stderr):
            _print_recorded(done)
    return done.document.exit_code


profile.add_command(command_of(CalibrateNic))
profile.add_command(what_if)


@profile.command()
@click.argument("directory", metavar="P")
@click.option("--curve", metavar="FILE", help="NIC by `profile calibrate -o`; default: from the profile.")
@click.option(
    "-o",
    "--out",
    type=Output(".html", ".svg", ".png", ".parquet"),
    metavar="FILE",
    help="Write a page (.html), figures (.svg, .png) or the network intervals (.parquet).",
)
@json_option
def show(directory: str, curve: str | None, out: str | None, as_json: bool) -> None:
    """Show how each node used its network, over time."""
    shown = api.show_profile(directory, curve)
    if out is not None:
        api.save_profile(shown, out)
    if as_json:
        print_json(shown.summary)
        return
    for sentence, notes in shown.sentences():
        print_wrapped(sentence)
        for note in notes:
            print_wrapped(note, style="yellow")
    columns, rows = shown.table()
    names = [name.replace(" (", "\n(") for name in columns]
    table = new_table(*((name, "" if place == 0 else "right") for place, name in enumerate(names)))
    for row in rows:
        table.add_row(*row)
    console().print(table)
    if out is not None:
        print_wrapped(f"written: {out}")


def _print_recorded(done: Profiled) -> None:
    found = done.document
    mpi = f", {found.mpi}" if found.mpi else ""
    print_wrapped(
        f"{done.directory}: {number(found.seconds, 3)} s, {found.ranks} ranks, {found.calls} calls{mpi}",
        style="bold",
    )
    for note in found.notes:
        print_wrapped(note, style="yellow")
    if found.exit_code:
        print_wrapped(f"The program ended with exit code {found.exit_code}.", style="bold yellow")
