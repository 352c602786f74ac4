"""A run that was measured, as Python sees it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from elbowroom.errors import UsageError
from elbowroom.store.folder import RunFolder

if TYPE_CHECKING:
    import pandas
    import pyarrow

    from elbowroom.advise.job import Job
    from elbowroom.campaign.results import Results
    from elbowroom.draw.figure import Figure
    from elbowroom.explain.explaining import Observed
    from elbowroom.machine.topology import Machine
    from elbowroom.stats.result import Finding, PointResult, Verdict
    from elbowroom.store.folder import Manifest

SHOW_SCHEMA = "elbowroom/show"
VERSION = 1

Format = Literal["parquet", "csv", "json", "png", "svg", "curves"]


class Run:
    """A run folder, read only. Nothing is computed before it is asked for."""

    def __init__(self, folder: RunFolder, results: Results | None = None) -> None:
        self._folder = folder
        if results is not None:
            self.__dict__["_results"] = results

    @cached_property
    def _results(self) -> Results:
        from elbowroom.campaign.results import evaluate

        return evaluate(self._folder)

    @property
    def path(self) -> Path:
        """The run folder."""
        return self._folder.path

    @property
    def manifest(self) -> Manifest:
        """What the run was asked for and where it ran."""
        return self._folder.manifest

    @property
    def machine(self) -> Machine:
        """The machine: packages, cores, NUMA nodes, caches, NICs."""
        return self._results.machine

    @property
    def verdict(self) -> Verdict:
        """Whether to trust the run, and what it says."""
        return self._results.verdict

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What was found in the data, in words and numbers."""
        return self._results.findings

    def points(self) -> list[PointResult]:
        """One result per point, in the plan's order."""
        return list(self._results.points)

    @cached_property
    def figures(self) -> tuple[Figure, ...]:
        """The figures of the experiment, as data."""
        return self._results.figures()

    def observed(self) -> Observed:
        """The run as `explain` takes it: results, and resamples of the raw samples."""
        from elbowroom.campaign.explaining import observed

        return observed(self._folder, self._results)

    def table(self) -> pyarrow.Table:
        """All raw samples as an Arrow table (see store/sealed.py for its columns)."""
        from elbowroom.store.sealed import table

        return table(self._folder.entries(), self.manifest.points)

    def frame(self) -> pandas.DataFrame:
        """All raw samples as a pandas data frame; UsageError where pandas is not installed."""
        try:
            import pandas  # noqa: F401
        except ImportError as error:
            raise UsageError(
                "pandas is not installed", field="frame", mend="pip install pandas, or use table()"
            ) from error
        frame: pandas.DataFrame = self.table().to_pandas()
        return frame

    def show(self) -> dict[str, Any]:
        """What `show --json` prints, as plain data."""
        from elbowroom.api.accesses import accesses_object
        from elbowroom.api.diffusion import step_table, table_object

        manifest = self.manifest
        steps = step_table(self)
        touched = accesses_object(self)
        return {
            "schema": SHOW_SCHEMA,
            "version": VERSION,
            "run": str(self.path),
            "elbowroom": manifest.elbowroom,
            "created": manifest.created,
            "command": list(manifest.command),
            "plan": manifest.plan,
            "machine": {
                **msgspec.to_builtins(self.machine),
                "state": manifest.state,
                "unknown": manifest.unknown,
            },
            "mpi": manifest.hello.get("mpi", {}),
            "measured_share": manifest.measured_share,
            "verdict": msgspec.to_builtins(self.verdict),
            "points": msgspec.to_builtins(self.points()),
            "findings": msgspec.to_builtins(self.findings),
            "notes": msgspec.to_builtins(manifest.notes),
            **({"steps": table_object(steps)} if steps else {}),
            **({"extraneous": touched} if touched else {}),
        }

    def report(
        self,
        path: Path | str | None = None,
        *,
        models: Sequence[Path | str] = (),
        job: Job | Path | str | None = None,
    ) -> Path:
        """Writes the report, one HTML file without network; default: report.html in the run folder.

        It shows the models of `models` (files, or names of published machines), else those of the run folder;
        and the `job` on the contention map of the first of them. UsageError for a job that does not fit it.
        """
        from elbowroom.api.mapping import jobbed
        from elbowroom.api.modelled import modelled
        from elbowroom.api.page import page_of
        from elbowroom.report.page import render
        from elbowroom.store.files import write_atomically

        target = Path(path) if path is not None else self._folder.report_path
        shown, doubts = modelled(self, models)
        asked = None if job is None else jobbed(self, shown, job)
        write_atomically(target, render(page_of(self._results, shown, doubts, asked)).encode())
        return target

    def export(self, kind: Format, path: Path | str) -> list[Path]:
        """Writes raw samples (parquet, csv), results (json), figures (png, svg: `path` is a folder), or the
        bandwidths that models learn from (curves: what `import_curves` reads).
        """
        if kind == "curves":
            return self._export_curves(Path(path))
        from elbowroom.campaign.exporting import export

        return export(
            self._folder, self.figures if kind in ("png", "svg") else (), self.show, kind, Path(path)
        )

    def _export_curves(self, path: Path) -> list[Path]:
        from elbowroom.api.measuring import chatter
        from elbowroom.api.predicting import curves_of
        from elbowroom.store.curves import write_curves

        if path.is_dir():
            raise UsageError("is a folder", field="out", value=str(path), mend="name a file")
        found = curves_of(self)
        for reason, count in found.left_out.items():
            chatter(f"left out: {count} point{'s' if count > 1 else ''}, {reason}")
        write_curves(path, found.curves)
        return [path]


def open(path: Path | str) -> Run:
    """Opens a run folder; raises UsageError when it is none, is damaged, or was written by a newer
    release.
    """
    return Run(RunFolder.open(path))
