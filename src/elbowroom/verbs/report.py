"""`elbowroom report` and `export`: files made of runs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from elbowroom.cli.options import Output, check_ending
from elbowroom.errors import UsageError
from elbowroom.files import is_stdout
from elbowroom.measure.formats import ENDINGS, FORMATS
from elbowroom.verbs.declaration import Verb, argument, option
from elbowroom.verbs.run_options import out_option
from elbowroom.verbs.run_tables import print_joined

if TYPE_CHECKING:
    from elbowroom.verbs.joined_runs import JoinedRuns

PENALTIES = "gpu-penalties"
"""The format of `export` that is made of a model, and not of a run."""


class FileList(msgspec.Struct, frozen=True, kw_only=True):
    """The files that a command wrote, as `--json` prints them."""

    schema: str = "elbowroom/files"
    version: int = 1
    files: tuple[str, ...]


class _WriteFiles(Verb):
    """A command that writes files and prints their names."""

    def document(self, result: Sequence[Path]) -> FileList:
        return FileList(files=tuple(map(str, result)))

    def print(self, result: Sequence[Path]) -> None:
        """The names, but of what is written to stdout on stderr."""
        for file in result:
            click.echo(str(file), err=is_stdout(file))


class WriteReport(_WriteFiles):
    """Write the report: one HTML file that works offline.

    Several runs of a plan, on different numbers of nodes of one machine, are joined into one report.
    """

    name = "report"
    has_tables = True

    runs: tuple[str, ...] = argument(metavar="RUN [RUN]...", nargs=-1)
    out: str | None = out_option(
        Output(".html", ".htm", bare=True), "File to write; default: report.html in the run folder."
    )
    models: tuple[str, ...] = option(
        "Show this model; may be repeated; default: the models in the run folder.",
        "M.json",
        spelled="--model",
    )
    job: str | None = option("Show this job on the contention map of the first model.", "JOB.toml")

    def do(self) -> list[Path]:
        """Writes the report of a run or of imported tables, or of several runs joined; returns its path."""
        from elbowroom.store.tables import has_tables
        from elbowroom.verbs.import_files import write_tables
        from elbowroom.verbs.run_folder import open

        if len(self.runs) == 1 and has_tables(Path(self.runs[0])):
            for field, value in (("model", self.models), ("job", self.job)):
                if value:
                    hint = "leave it out: logs hold no curves"
                    raise UsageError("is not valid for tables of logs", field=field, hint=hint)
            return [write_tables(Path(self.runs[0]), self.out)]
        if len(self.runs) == 1:
            return [open(self.runs[0]).report(self.out, models=self.models, job=self.job)]
        for field, value in (("model", self.models), ("job", self.job)):
            if value:
                raise UsageError(
                    "is only valid with a single run", field=field, hint="leave it out, or name one run"
                )
        if self.out is None:
            raise UsageError(
                "is missing: a joined report is in no run folder", field="out", hint="add -o joined.html"
            )
        return [self._joined.report(self.out)]

    @cached_property
    def _joined(self) -> JoinedRuns:
        from elbowroom.verbs.joined_runs import join_runs

        return join_runs(*self.runs)

    def print(self, result: Sequence[Path]) -> None:
        """What joined runs show, and the name of the file."""
        if len(self.runs) > 1:
            print_joined(self._joined)
        super().print(result)


class Export(_WriteFiles):
    """Write samples, results or figures in a format that other programs read.

    Raw samples: parquet, csv. Results: json, osu (tables of the OSU micro-benchmarks), bmf (Bencher),
    openmetrics (Prometheus), junit (CI servers). Figures: png, svg. The topology with measured memory
    attributes: hwloc. Curves to `import`: curves. Of the model M.json of an accelerator: gpu-penalties, how
    much longer kernels and copies take beside each other.
    """

    name = "export"

    path: str = argument(metavar="RUN|M.json")
    kind: str = option(
        "One of those above.",
        "FORMAT",
        spelled="--format",
        default="parquet",
        type=click.Choice((*FORMATS, PENALTIES)),
    )
    out: str = option(
        "A file; a folder for the figures (png, svg).", "PATH", spelled="-o --out", required=True
    )

    def do(self) -> list[Path]:
        """Writes the files; returns their paths."""
        from elbowroom.verbs.gpu_models import export_penalties
        from elbowroom.verbs.model_file import load_model
        from elbowroom.verbs.run_folder import open

        endings = (".json",) if self.kind == PENALTIES else ENDINGS.get(self.kind)
        if endings:
            wrong = f"is not a file name of the format {self.kind}"
            check_ending(self.out, endings, bare=True, wrong=wrong)
        if self.kind == PENALTIES:
            return [export_penalties(load_model(self.path), self.out)]
        return open(self.path).export(self.kind, self.out)  # type: ignore[arg-type]  # one of FORMATS
