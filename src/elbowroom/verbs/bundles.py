"""Bundles of studies: one file with everything that a study measured and what it was measured with, for an
archive (thesis, appendix B); and two of them compared.
"""

from __future__ import annotations

import datetime
import hashlib
import os
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from elbowroom.errors import MachineError, UsageError
from elbowroom.files import write_with
from elbowroom.version import __version__

BUNDLE, RESULTS = "bundle.json", "results.json"
VERSION = 1
MOST_BYTES = 64 << 30
"""What is unpacked of a bundle at most."""
ENVIRONMENT = (
    "ELBOWROOM_", "FI_", "GOMP_", "HWLOC_", "KMP_", "LD_LIBRARY_PATH", "MKL_", "MPICH_", "MPIR_", "OMP_",
    "OMPI_", "OPENBLAS_", "PMIX_", "PRTE_", "SLURM_", "STARPU_", "UCX_",
)  # fmt: skip
"""How the names of the environment variables begin that change what MPI, threads and the BLAS do."""


class Bundle(msgspec.Struct, frozen=True, kw_only=True):
    """bundle.json: what is in a bundle. `files`: SHA-256 of each other file; `commands`: the command line of
    each run; `software`: the versions of each run; `environment`: variables of the process that wrote the
    bundle.
    """

    schema: str = "elbowroom/bundle"
    version: int = VERSION
    elbowroom: str = __version__
    created: str
    study: str
    paper: str
    machine: str
    citation: str
    commands: dict[str, str]
    software: dict[str, dict[str, Any]]
    environment: dict[str, str]
    files: dict[str, str]


class ConditionDifference(msgspec.Struct, frozen=True, kw_only=True):
    """Something that two bundles were made with, and that differs: its name, and both values."""

    what: str
    a: str
    b: str


class ChangedVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """A statement of the paper with another verdict in bundle b."""

    label: str
    text: str
    a: str
    b: str


class RunChange(msgspec.Struct, frozen=True, kw_only=True):
    """A run that both bundles have: values that were compared, those that changed, and that in a sentence."""

    run: str
    values: int
    significant: int
    sentence: str


class BundleComparison(msgspec.Struct, frozen=True, kw_only=True):
    """What `compare A.zip B.zip --json` prints; `only_a`, `only_b`: runs that the other one lacks."""

    schema: str = "elbowroom/bundle-comparison"
    version: int = 1
    a: str
    b: str
    study: str
    sentence: str
    conditions: tuple[ConditionDifference, ...]
    verdicts: tuple[ChangedVerdict, ...]
    runs: tuple[RunChange, ...]
    only_a: tuple[str, ...] = ()
    only_b: tuple[str, ...] = ()


def write_bundle(folder: Path, path: Path) -> Bundle:
    """Writes all files of a study's folder and bundle.json as a zip file, whole or not at all."""
    from elbowroom.documents import encode
    from elbowroom.store.folder import MANIFEST_FORMAT

    files = {file.relative_to(folder).as_posix(): file for file in _files(folder)}
    document = msgspec.json.decode((folder / RESULTS).read_bytes())
    manifests = {
        manifest.parent.name: MANIFEST_FORMAT.read(manifest)
        for manifest in sorted(folder.glob("runs/*/manifest.json"))
    }
    software = {name: {**manifest.software, "mpi": manifest.mpi} for name, manifest in manifests.items()}
    commit = next((one["commit"] for one in software.values() if "commit" in one), "")
    bundle = Bundle(
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        study=document["study"],
        paper=document["paper"],
        machine=document["machine"],
        citation=f"elbowroom {__version__}{f', commit {commit}' if commit else ''}: the study "
        f"{document['study']} on {document['machine']}, after {document['paper']}",
        commands={run["name"]: run["command"] for run in document["runs"]},
        software=software,
        environment={name: value for name, value in os.environ.items() if name.startswith(ENVIRONMENT)},
        files={name: hashlib.sha256(file.read_bytes()).hexdigest() for name, file in files.items()},
    )

    def write(temporary: Path) -> None:
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(BUNDLE, encode(bundle))
            for name, file in files.items():
                archive.write(file, name)

    write_with(path, write)
    return bundle


def _files(folder: Path) -> Iterator[Path]:
    """The files of a study; those whose names begin with a dot are of runs that go on."""
    for file in sorted(folder.rglob("*")):
        if file.is_file() and not any(part.startswith(".") for part in file.relative_to(folder).parts):
            yield file


def is_bundle(path: object) -> bool:
    """Whether that is the path of a zip file."""
    return isinstance(path, str | Path) and Path(path).is_file() and zipfile.is_zipfile(path)


def unpack(path: Path, folder: Path) -> Bundle:
    """Unpacks a bundle; what is in it. UsageError for a file that is no bundle, is damaged or of another
    release: values and verdicts of two releases may follow other rules.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            bundle = msgspec.json.decode(archive.read(BUNDLE), type=Bundle)
            if bundle.schema != "elbowroom/bundle":
                raise _wrong(path, "is not a bundle of a study")
            if bundle.elbowroom != __version__:
                release = f"elbowroom {bundle.elbowroom}"
                raise UsageError(
                    f"was written by {release}, and this is elbowroom {__version__}",
                    field="bundle",
                    value=str(path),
                    hint=f"compare it with {release}; its files can be unpacked by any zip program",
                )
            if sum(item.file_size for item in archive.infolist()) > MOST_BYTES:
                raise _wrong(path, f"has more than {MOST_BYTES >> 30} GiB")
            for name, digest in bundle.files.items():
                target = (folder / name).resolve()
                if not target.is_relative_to(folder.resolve()):
                    raise _wrong(path, f"has a file outside of its folder, {name!r}")
                data = archive.read(name)
                if hashlib.sha256(data).hexdigest() != digest:
                    raise _wrong(path, f"has another file {name!r} than it was written with")
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(data)
    except (zipfile.BadZipFile, KeyError, msgspec.DecodeError, EOFError) as error:
        raise _wrong(path, "is not a bundle of a study, or is damaged") from error
    except OSError as error:
        raise MachineError(
            f"cannot be unpacked ({error.strerror})", field="bundle", value=str(path), hint="check TMPDIR"
        ) from error
    return bundle


def _wrong(path: Path, what: str) -> UsageError:
    return UsageError(what, field="bundle", value=str(path), hint="give a file of `study --bundle`")


def compare_bundles(a: Path, b: Path, at_least: float) -> BundleComparison:
    """What two bundles of one study were made with, which verdicts changed, and the values of the runs that
    both have; changes below the share `at_least` do not count. UsageError for bundles of two papers.
    """
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        folders = Path(first), Path(second)
        bundles = tuple(unpack(path, folder) for path, folder in zip((a, b), folders, strict=True))
        if bundles[0].study != bundles[1].study:
            raise UsageError(
                f"is of the study {bundles[1].study}, and {a} of {bundles[0].study}",
                field="bundle",
                value=str(b),
                hint="compare bundles of one study",
            )
        names = [set(bundle.software) for bundle in bundles]
        runs = tuple(_changed(name, *folders, at_least) for name in sorted(names[0] & names[1]))
        verdicts = tuple(_changed_verdicts(*(_verdicts(folder) for folder in folders)))
    return BundleComparison(
        a=str(a),
        b=str(b),
        study=bundles[0].study,
        sentence=_sentence(runs, verdicts),
        conditions=tuple(_differences(*map(_conditions, bundles))),
        verdicts=verdicts,
        runs=runs,
        only_a=tuple(sorted(names[0] - names[1])),
        only_b=tuple(sorted(names[1] - names[0])),
    )


def _sentence(runs: tuple[RunChange, ...], verdicts: tuple[ChangedVerdict, ...]) -> str:
    changed, values = sum(run.significant for run in runs), sum(run.values for run in runs)
    return f"{changed} of {values} values in {len(runs)} runs changed, and {len(verdicts)} verdicts."


def _changed(name: str, first: Path, second: Path, at_least: float) -> RunChange:
    from elbowroom.results.change_sentence import sentence
    from elbowroom.results.comparison import compare
    from elbowroom.verbs.run_folder import open

    a, b = (open(folder / "runs" / name).measured() for folder in (first, second))
    changes = compare(a, b, at_least=at_least)
    return RunChange(
        run=name,
        values=len(changes),
        significant=sum(change.significant for change in changes),
        sentence=sentence(changes, at_least),
    )


def _verdicts(folder: Path) -> dict[tuple[str, str], str]:
    document = msgspec.json.decode((folder / RESULTS).read_bytes())
    return {
        (exhibit["label"], statement["text"]): statement["verdict"]
        for exhibit in document["exhibits"]
        for statement in exhibit["statements"]
    }


def _changed_verdicts(
    a: dict[tuple[str, str], str], b: dict[tuple[str, str], str]
) -> Iterator[ChangedVerdict]:
    for (label, text), verdict in a.items():
        other = b.get((label, text), "not judged")
        if other != verdict:
            yield ChangedVerdict(label=label, text=text, a=verdict, b=other)


def _conditions(bundle: Bundle) -> dict[str, str]:
    """What a bundle was made with, flat."""
    flat = {"machine": bundle.machine}
    flat |= {f"environment {name}": value for name, value in bundle.environment.items()}
    for run, software in bundle.software.items():
        flat |= _flat(f"{run}: software", software)
    return flat


def _flat(name: str, value: object) -> dict[str, str]:
    if not isinstance(value, dict):
        return {name: str(value)}
    return {
        key: text for part, inner in value.items() for key, text in _flat(f"{name} {part}", inner).items()
    }


def _differences(a: dict[str, str], b: dict[str, str]) -> Iterator[ConditionDifference]:
    for what in sorted(a.keys() | b.keys()):
        if a.get(what) != b.get(what):
            yield ConditionDifference(what=what, a=a.get(what, ""), b=b.get(what, ""))
