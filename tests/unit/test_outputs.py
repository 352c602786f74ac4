"""What an output does to what is there already: replaced, written into, or refused; inputs are bounded."""

from __future__ import annotations

import errno
import os
import re
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from elbowroom import cli, files
from elbowroom.draw.figure import Axis, Figure, Series
from elbowroom.draw.files import save
from elbowroom.errors import MachineError, UsageError
from elbowroom.files import check_output, read_document, read_text, write_atomically
from elbowroom.store.folder import RunFolder


@pytest.fixture
def null_device(tmp_path: Path) -> Path:
    """A device of our own: /dev/null itself is nothing to risk."""
    path = tmp_path / "null"
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    except OSError as error:
        pytest.skip(f"a device cannot be made here ({error.strerror})")
    return path


def test_a_device_stays_a_device(null_device: Path) -> None:
    write_atomically(null_device, b"data")
    assert stat.S_ISCHR(null_device.stat().st_mode)


def test_a_figure_into_a_device_leaves_the_device(null_device: Path, tmp_path: Path) -> None:
    link = tmp_path / "figure.svg"
    link.symlink_to(null_device)
    axis = Axis(label="n")
    curve = Series(name="a", style="line", x=(1.0, 2.0), y=(1.0, 2.0))
    save(Figure(name="f", title="t", x=axis, left=axis, series=(curve,)), link)
    assert stat.S_ISCHR(link.stat().st_mode)
    assert link.is_symlink()


def test_a_symbolic_link_stays_and_its_target_is_replaced(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"earlier")
    link.symlink_to("target")
    write_atomically(link, b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


def test_a_link_to_nothing_makes_what_it_names(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "target")
    write_atomically(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_bytes() == b"new"


def test_a_pipe_is_written_into(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    write_atomically(pipe, b"x" * 200_000)
    reader.join(30)
    assert read == [b"x" * 200_000]
    assert pipe.is_fifo()


def test_a_pipe_that_nobody_reads_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_READER_WAIT", 0.05)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(MachineError, match="start its reader first"):
        write_atomically(tmp_path / "pipe", b"data")
    assert (tmp_path / "pipe").is_fifo()


def test_a_socket_is_left_alone(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
        with pytest.raises(MachineError, match="cannot be written"):
            write_atomically(tmp_path / "socket", b"data")
        assert (tmp_path / "socket").is_socket()


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is a folder; name a file in it"):
        write_atomically(tmp_path, b"data")


def test_the_permissions_of_a_replaced_file_stay(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"earlier")
    (tmp_path / "f").chmod(0o600)
    write_atomically(tmp_path / "f", b"new")
    assert (tmp_path / "f").stat().st_mode & 0o777 == 0o600


def test_a_name_as_long_as_the_disk_allows_is_written(tmp_path: Path) -> None:
    write_atomically(tmp_path / ("ä" * 127), b"data")
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"data"]


def test_a_name_that_is_too_long_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="shorter name"):
        write_atomically(tmp_path / ("x" * 300), b"data")
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_is_no_text_is_written(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/a \xff b"))
    write_atomically(path, b"data")
    assert path.read_bytes() == b"data"


WRITE = "import sys; from pathlib import Path; from elbowroom.files import write_atomically as w; "


@pytest.mark.parametrize("name", ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_the_programs_own_output_is_written_in_order(tmp_path: Path, name: str) -> None:
    code = WRITE + f"print('before'); w(Path({name!r}), b'data\\n'); print('after')"
    with (tmp_path / "out").open("wb") as out:
        subprocess.run([sys.executable, "-c", code], stdout=out, check=True, cwd=tmp_path)
    assert (tmp_path / "out").read_text() == "before\ndata\nafter\n"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_file_that_is_open_already_is_written_and_not_replaced(tmp_path: Path) -> None:
    with (tmp_path / "out").open("w+b") as out:
        write_atomically(Path(f"/dev/fd/{out.fileno()}"), b"data")
        assert out.read() == b"data"


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP])
def test_a_disk_that_cannot_sync_directories_is_written_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    sync = os.fsync

    def refuse(handle: int) -> None:
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(number, os.strerror(number))
        sync(handle)

    monkeypatch.setattr(os, "fsync", refuse)
    write_atomically(tmp_path / "f", b"data")
    assert (tmp_path / "f").read_bytes() == b"data"


def test_a_disk_error_while_a_directory_is_synced_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync = os.fsync

    def refuse(handle: int) -> None:
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        sync(handle)

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(MachineError, match="Input/output error"):
        write_atomically(tmp_path / "f", b"data")


@pytest.fixture
def read_only_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system that cannot be written."""
    if os.geteuid() != 0:
        pytest.skip("mounting a file system takes root")
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "ro,size=64k", "tmpfs", str(disk)]
    mounted = subprocess.run(mount, capture_output=True, text=True, check=False)
    if mounted.returncode != 0:
        pytest.skip(f"a read-only file system cannot be mounted: {mounted.stderr.strip()}")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_read_only_disk_is_a_sentence(read_only_disk: Path, recorded: Path) -> None:
    with pytest.raises(MachineError, match="the disk is read-only: choose another place"):
        write_atomically(read_only_disk / "f", b"data")
    run = RunFolder.open(recorded)
    with pytest.raises(MachineError, match="the disk is read-only"):
        RunFolder.create(read_only_disk / "r", run.manifest, run.topology())


KEPT = ("manifest.json", "samples.jsonl", "samples.parquet", "topology.xml")


@pytest.mark.parametrize("name", KEPT)
@pytest.mark.parametrize("way", ["itself", "symbolic link", "hard link"])
def test_an_output_that_is_a_file_of_a_run_is_refused(
    recorded: Path, tmp_path: Path, name: str, way: str
) -> None:
    path = recorded / name
    if not path.exists():
        path.write_bytes(b"sealed")
    before = path.read_bytes()
    if way == "symbolic link":
        (tmp_path / "link").symlink_to(path)
        path = tmp_path / "link"
    elif way == "hard link":
        os.link(path, tmp_path / "link")
        path = tmp_path / "link"
    with pytest.raises(UsageError, match="choose another name for the output"):
        check_output(path, [recorded])
    if way != "hard link":
        with pytest.raises(UsageError, match="holds what was measured"):
            write_atomically(path, b"data")
    assert (recorded / name).read_bytes() == before


@pytest.mark.parametrize("name", ["rank-00000.jsonl", "rank-00003.thread-00001.ring"])
def test_an_output_that_is_a_file_of_a_trace_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="is the name of a file of a trace"):
        write_atomically(tmp_path / name, b"data")


def test_reports_and_models_in_a_run_folder_are_outputs_like_others(recorded: Path) -> None:
    write_atomically(recorded / "report.html", b"data")
    check_output(recorded / "report.html", [recorded])


def words_of(kind: str, run: Path, job: Path) -> list[str]:
    """A command whose output is a file of the run, or its own input."""
    return {
        "fit": ["fit", str(run), "-o", str(run / "samples.jsonl")],
        "export": ["export", str(run), "-o", str(run / "samples.parquet")],
        "export csv": ["export", str(run), "--format", "csv", "-o", str(run / "manifest.json")],
        "export curves": ["export", str(run), "--format", "curves", "-o", str(run / "topology.xml")],
        "report": ["report", str(run), "-o", str(run / "manifest.json")],
        "report of a job": ["report", str(run), "--job", str(job), "-o", str(job)],
        "report of a model": ["report", str(run), "--model", str(job), "-o", str(job)],
        "machine from-run": ["machine", "from-run", str(run), "-o", str(run / "manifest.json")],
        "advise": ["advise", "henri", "--job", str(job), "-o", str(job)],
        "advise a model": ["advise", str(job), "--job", "j.toml", "-o", str(job)],
        "predict": ["predict", str(job), "-o", str(job)],
        "evaluate": ["evaluate", str(run), str(job), "-o", str(job)],
        "explain": ["explain", str(run), "-o", str(run / "samples.jsonl")],
        "calibrate": ["calibrate", "--machine", str(job), "-o", str(job)],
        "overlap": ["predict-step", str(job), "-o", str(job)],
        "simulate": ["simulate-memory", "--machine", str(job), "-o", str(job)],
        "trace merge": ["trace", "merge", str(run), "--format", "json", "-o", str(run / "rank-00000.jsonl")],
        "trace stat": ["trace", "stat", str(run), "-o", str(run / "rank-00000.jsonl")],
        "trace sync": ["trace", "sync", str(run), "-o", str(run / "rank-00000.jsonl")],
        "trace overhead": ["trace", "overhead", "-o", str(job), "--", "sh", str(job)],
    }[kind]


KINDS = (
    "fit", "export", "export csv", "export curves", "report", "report of a job", "report of a model",
    "machine from-run", "advise", "advise a model", "predict", "evaluate", "explain", "calibrate", "overlap",
    "simulate", "trace merge", "trace stat", "trace sync", "trace overhead",
)  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_no_command_destroys_what_it_reads(
    recorded: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], kind: str
) -> None:
    job = tmp_path / "job.toml"
    job.write_text("[step]\n")
    (recorded / "rank-00000.jsonl").write_text("{}\n")
    (recorded / "samples.parquet").write_text("sealed")
    before = {path: path.read_bytes() for path in (job, *recorded.iterdir())}
    assert cli.run(words_of(kind, recorded, job)) == 2
    # A command that writes pictures refuses the ending of the name first.
    assert re.search("choose another name for the output|end the name in", capfd.readouterr().err)
    assert {path: path.read_bytes() for path in (job, *recorded.iterdir())} == before


def test_a_table_can_be_written_to_stdout(recorded: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["export", str(recorded), "--format", "csv", "-o", "-"]) == 0
    out = capfd.readouterr().out
    assert out.startswith('"point"')
    assert out.endswith("\n")
    assert "\n-\n" not in out
    assert not Path("-").exists()


def pipe(path: Path) -> None:
    os.mkfifo(path)


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (pipe, "is a pipe, not a file"),
        (device, "is a device, not a file"),
        (huge, "is larger than 1 MiB"),
        (Path.mkdir, "is a folder, not a file"),
        (lambda path: None, "cannot be read"),
        (lambda path: path.symlink_to(path), "cannot be read"),
    ],
)
def test_what_is_no_file_or_too_large_is_not_read(
    tmp_path: Path, make: Callable[[Path], object], what: str
) -> None:
    make(tmp_path / "f")
    with pytest.raises(UsageError, match=what) as caught:
        read_document(tmp_path / "f", field="plan", hint="name a TOML file", limit=1 << 20)
    assert (caught.value.field, caught.value.hint) == ("plan", "name a TOML file")


def test_text_that_is_not_utf8_is_refused_and_a_byte_order_mark_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"\xef\xbb\xbfa = 1")
    assert read_text(tmp_path / "f", field="plan", hint="") == "a = 1"
    (tmp_path / "f").write_bytes(b"\xff\xfea")
    with pytest.raises(UsageError, match="is not text in UTF-8"):
        read_text(tmp_path / "f", field="plan", hint="")


@pytest.mark.parametrize(
    "words",
    [
        ["show", "{run}"],
        ["run", "quick", "--machine", "{folder}/pipe.toml", "--dry-run"],
        ["run", "quick", "--machine", "{folder}/zero.toml", "--dry-run"],
        ["run", "{folder}/pipe.toml", "--machine", "henri", "--dry-run"],
        ["predict", "{folder}/zero.toml"],
        ["import", "{folder}/zero.toml", "-o", "new"],
        ["advise", "henri", "--job", "{folder}/pipe.toml"],
        ["predict-step", "{folder}/zero.toml"],
    ],
)
def test_no_command_waits_for_a_pipe_or_reads_a_device_without_end(
    recorded: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], words: list[str]
) -> None:
    (recorded / "manifest.json").unlink()
    pipe(recorded / "manifest.json")
    pipe(tmp_path / "pipe.toml")
    device(tmp_path / "zero.toml")
    assert cli.run([word.format(run=recorded, folder=tmp_path) for word in words]) == 2
    err = capfd.readouterr().err
    assert len(err.splitlines()) == 1
    assert "; " in err
