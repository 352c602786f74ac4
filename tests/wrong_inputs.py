"""The table of tests/unit/cli/test_wrong_inputs.py: wrong values, and where they can stand on a command line.

A target is a command line with `@` where the value stands. Everything else in it is right, so that the value
alone is to blame. tests/wrong_files.py makes the files that are named here.
"""

from __future__ import annotations

from collections.abc import Iterator

LONG = "n" * 300
NOT_UTF8 = "caf\udce9"
ARABIC = "\u0663"

TEXTS = ("", "   ", NOT_UTF8)
NO_NUMBERS = (*TEXTS, "two", ARABIC, "0x10", "1_0", "1,5", LONG)
FILES = (
    *TEXTS, LONG, f"{LONG}/x", "missing", "bad/empty", "bad/binary", "bad/cut.json", "bad/deep.json",
    "bad/deep.toml",
    "bad/other.json", "bad/list.json", "bad/utf16.toml", "bad/fifo", "bad/zero", "bad/loop", "bad/folder",
)  # fmt: skip
TOML_FILES = (
    *TEXTS, f"{LONG}.toml", "missing.toml", "bad/empty.toml", "bad/binary.toml", "bad/deep.toml",
    "bad/utf16.toml",
    "bad/fifo.toml", "bad/zero.toml", "bad/loop.toml", "bad/folder.toml", "bad/cut.toml",
)  # fmt: skip
RUNS = (
    *TEXTS, LONG, "missing", "bad/empty", "bad/folder", "bad/fifo", "bad/zero", "bad/loop", "bad/run-empty",
    "bad/run-cut", "bad/run-binary", "bad/run-deep", "bad/run-list", "bad/run-other", "bad/run-newer",
    "bad/run-fifo",
    "bad/run-zero", "bad/run-folder",
)  # fmt: skip
JOURNALS = (
    "bad/journal-missing",
    "bad/journal-binary",
    "bad/journal-shape",
    "bad/journal-fifo",
    "bad/journal-deep",
)
NEW_FILES = (*TEXTS, LONG, "folder", ".", "/", "missing/x", "model.json/x", "bad/loop/x")
NEW_FOLDERS = (*TEXTS, LONG, ".", "/", "run", "model.json", "model.json/x", "bad/fifo", "bad/loop")

SIZES = (*TEXTS, "two", ARABIC, "0x10", "1_0", LONG, "-4", "4 XB", "nan", "inf", "1.5", "1e400", "9" * 30)

VALUES: dict[str, tuple[str, ...]] = {
    "run": RUNS,
    "measured run": (*RUNS, *JOURNALS),
    "model": (*FILES, "bad/newer.json", "henry"),
    "machine": (
        *TOML_FILES, "bad/deep.xml", "bad/binary.xml", "bad/empty.xml", "bad/fifo.xml", "hneri", "henri:x"
    ),
    "wild machine": tuple(f"bad/machine-{number}.toml" for number in range(10)),
    "plan": (*TOML_FILES, "quikc", "bad/keys.toml"),
    "toml": TOML_FILES,
    "file": FILES,
    "hostfile": (
        "", NOT_UTF8, LONG, "missing", "bad/empty", "bad/binary", "bad/fifo", "bad/zero", "bad/folder"
    ),
    "trace": (*TEXTS, LONG, "missing", "bad/empty", "bad/folder", "bad/fifo", "bad/loop", "run"),
    "new file": NEW_FILES,
    "new figure": (*NEW_FILES, "figure", "figure.pdf", "folder.svg", "missing/x.svg"),
    "new folder": NEW_FOLDERS,
    "count": (*NO_NUMBERS, "0", "-1", "1.5", "nan", "1e400", "9" * 30),
    "counts": (*TEXTS, ",", "1,", "0", "-1", "1.5", "3,two", ARABIC, LONG, "9" * 30),
    "index": (*NO_NUMBERS, "-1", "1.5", "nan", "9" * 30, "4096"),
    "any index": (*NO_NUMBERS, "-1", "1.5", "nan", "9" * 30),
    "duration": (*TEXTS, "two", ARABIC, "nan", "inf", "-1", "0", "60x", "1e400", LONG, "9" * 30),
    "positive": (*NO_NUMBERS, "nan", "inf", "-inf", "1e400", "-1", "0"),
    "amount": (*NO_NUMBERS, "nan", "inf", "-inf", "1e400", "-1"),
    "text": TEXTS,
    "name": (*TEXTS, LONG, "nonesuch"),
    "size": (*SIZES, "0", "1,5"),
    "sizes": (*SIZES, "0", ",", "4,,8"),
    "bytes": (*SIZES, "1,5"),
    "list": (*TEXTS, ",", "1,", "a-b", "3-1", "1,1", ARABIC, "0-99999999", "-1", "9" * 30),
    "setting": (
        *TEXTS, "=", "x", "=1", "nonesuch=1", "repetitions=nan", "window=inf", "window=", "n=" + "9" * 30
    ),
    "parameter": (*TEXTS, "=", "x", "=1", "nonesuch=1", "line_fill_buffers=nan", "line_fill_buffers=-1"),
    "pattern": (*TEXTS, "(", "[a", "*", "(?P<a>x)(?P<a>y)"),
    "choice": (*TEXTS, "nonesuch", LONG),
    "hosts": (*TEXTS, ",", "a,,b", "-x", "a b"),
    "mpi": (*TEXTS, LONG, "/nowhere", "bad/folder", "bad/empty", "openmpj"),
    "group": (*TEXTS, "4@0", "x", "1:nan@0", "9:4@0", "0:-4@0", "0:4@9", "1:" + "9" * 30 + "@0"),
    "copy": (*TEXTS, "fast@0", "nan@0", "inf@0", "-1@0", "1000@9", "1000"),
    "memory": (
        *TEXTS, "=", "p", "=1GB/s", "x=1GB/s", "p=fast", "p=-1GB/s", "p=nan", "p=1GB",
        "p=" + "9" * 30 + "GB/s",
    ),
    "cache": (*TEXTS, "=", "p", "p=1MiB", "p=@1GB/s", "p=1MiB@", "p=-1@1GB/s", "p=1MiB@fast", "x=1MiB@1GB/s"),
    "percentage": ("nan%", "inf%", "-1%", "1e400%", "200%", "two", "5%%", "", " ", ARABIC),
    "part": ("nan", "inf", "-inf", "1e400", "two", "", ARABIC),
}  # fmt: skip

SHORT = {
    "{MODELLED}": "--cores 4 --comp-node 0 --comm-node 0",
    "{STEP}": "--comp-bytes 1GB --comm-bytes 1MB",
    "{TIMES}": "--t-comp 1 --t-comm 1 --l-comp 1.2 --l-comm 1.5",
    "{SPLIT}": "--t-comm 1 --l-comp 1.2 --l-comm 1.5",
    "{VIRTUAL}": "run sizes --machine henri --no-report --out new",
    "{LIVE}": "run sizes --dry-run --launcher mpiexec",
    "{VERIFY}": "advise henri --job job.toml --verify --machine henri --run new",
    "{CALIBRATE}": "calibrate --machine henri --budget 3 --no-report --run new",
    "{STUDY}": "study denis2021 --machine henri --quick",
    "{RECORD}": "trace record -o new",
}

TARGETS = """
run:
  run --resume @
  run quick --dry-run --launcher replay:@
  calibrate --resume @
  advise henri --job job.toml --verify --resume @
  study --resume @
measured run:
  colocate calibrate @ -o new.json
  show @
  compare @ run
  compare run @
  report @
  export @ --format csv -o new.csv
  export @ --format svg -o new
  fit @ -o new.json
  fit curves @ -o new.json
  evaluate @ henri
  explain @
  explain run @
  machine from-run @ -o new.toml
model:
  colocate predict p --model @
  predict @
  overlap @ {MODELLED} {STEP}
  evaluate curves @
  advise @ --job job.toml
  report run --model @
machine:
  machine show @
  run sizes --machine @ --no-report --out new
  simulate --machine @ --parameters
  calibrate --machine @ --run new
  study denis2021 --machine @ -o new
  advise henri --job job.toml --verify --run new --machine @
wild machine:
  machine show @
  run sizes --machine @ --no-report --out new
plan:
  run @ --machine henri --out new
  calibrate --plan @ --machine henri --run new
toml:
  advise henri --job @
  report run --model model.json --job @
  predict henri --load @
  colocate schedule @ --matrix matrix.csv
  colocate measure @ -o new --dry-run
file:
  colocate schedule --matrix @
  colocate schedule --matrix matrix.csv --half @
  colocate predict @
  colocate predict p --curve @
  colocate measure apps.toml -o new --curve @
  diagnose --profile @
  diagnose --profile p --model @
  diagnose --profile p --curve @
  profile what-if @
  profile what-if p --model @
  profile what-if p --curve @
  profile show p --curve @
  overlap --table @
  import @ -o new
  broadcast simulate --network @
  broadcast factorize --times @
  broadcast simulate --platform @
  broadcast tune --from @
  broadcast areas --from @
hostfile:
  {LIVE} --hostfile @
  advise henri --job job.toml --verify --launcher mpiexec --run new --hostfile @
  calibrate --launcher mpiexec --run new --hostfile @
  broadcast bench --launcher mpiexec --hostfile @
  profile calibrate --launcher mpiexec --hostfile @
  study tan2012 --launcher mpiexec -o new --hostfile @
trace:
  trace stat @
  trace activity @
  trace check @
  trace sync @
  trace merge @ -o new.json
  trace dag @ -o new.dot
  trace overlap @
  trace overlap t @
  trace overlap @ t --compare
  profile show @
new file:
  colocate calibrate run -o @
  advise henri --job job.toml -o @
  report run -o @
  report run run -o @
  export run --format csv -o @
  export run --format parquet -o @
  fit curves -o @
  machine from-run curves -o @
  trace dag t -o @
  trace sync t --report @
  {CALIBRATE} -o @
  broadcast tune --sizes 4 --recipients 1 -o @
  colocate predict p -o @
  diagnose --profile p -o @
  profile calibrate --launcher nonesuch -o @
  colocate schedule jobs.toml --matrix matrix.csv --slurm @
new figure:
  explain curves -o @
  overlap {TIMES} -o @
  evaluate curves henri -o @
  predict henri -o @
  simulate --machine henri --cores 1 -o @
  trace merge t -o @
  trace stat t --figure @
  trace overlap t -o @
  trace activity t --figure @
  trace overhead --repeat 1 -o @ -- true
  trace simulate-clocks --clocks 2 -o @
  broadcast areas -o @
  colocate schedule --matrix matrix.csv -o @
  profile show p -o @
  broadcast bench -o @
new folder:
  profile record -o @ -- true
  diagnose --profile-out @ -- true
  trace activity t --tables @
  run sizes --machine henri --no-report --out @
  import curves.csv -o @
  calibrate --machine henri --budget 3 --no-report --run @
  {STUDY} -o @
  advise henri --job job.toml --verify --machine henri --run @
  colocate measure apps.toml -o @
count:
  colocate calibrate run --repeat @
  {VIRTUAL} --repeat @
  {STUDY} -o new --repeat @
  {VIRTUAL} --starts @
  {VERIFY} --repeat @
  {CALIBRATE} --repeat @
  {CALIBRATE} --budget @
  explain run --cores @
  simulate --machine henri --comm-threads @
  trace stat t --bins @
  trace activity t --bins @
  profile record -o new --records @ -- true
  trace overhead --repeat @ -- true
  trace simulate-clocks --clocks @
  broadcast simulate --recipients @
  broadcast factorize --times times.json --rows @
  broadcast factorize --times times.json --task qr --rows 4 --columns @
  broadcast factorize --times times.json --workers @
  broadcast factorize --times times.json --block @
  broadcast simulate --nodes @
  broadcast simulate --platform fat-tree --racks @
  broadcast areas --recipients @
  broadcast bench --ranks @
  profile calibrate --ranks @
  profile calibrate --nic 50MB/s --ranks-per-node @
  profile record -o new --nic 50MB/s --ranks-per-node @ -- mpirun true
  nic run --bandwidth 50MB/s --ranks-per-node @ -- true
  broadcast bench --repeat @
  colocate measure apps.toml -o new --repeat @
  profile calibrate --repeat @
  diagnose --profile p --cores @
  diagnose --profile p --verify {cores} --repeat @
  profile what-if p --cores @
  profile what-if p --fewer-cores @
  predict henri --comm-node 0 --comm-threads @
counts:
  broadcast tune --recipients @
index:
  {VIRTUAL} --comm-core @
  {VIRTUAL} --comp-node @
  {VIRTUAL} --comm-node @
  predict henri --cores @ --comp-node 0 --comm-node 0
  predict henri --cores 4 --comp-node @ --comm-node 0
  predict henri --cores 4 --comp-node 0 --comm-node @
  predict henri --model flow --cores-other @
  overlap henri --cores-other @ {MODELLED} {STEP}
  overlap henri --cores @ --comp-node 0 --comm-node 0 {STEP}
  overlap henri --cores 4 --comp-node @ --comm-node 0 {STEP}
  overlap henri --cores 4 --comp-node 0 --comm-node @ {STEP}
  simulate --machine henri --cores 1 --comp-node @
  simulate --machine henri --cores 1 --comm-node @
  evaluate curves henri --stacked -o new.svg --comp-node @
  {RECORD} --core @ -- true
  diagnose --profile p --comp-node @
  diagnose --profile p --comm-node @
  profile what-if p --comp-node @
  profile what-if p --comm-node @
any index:
  colocate measure apps.toml -o new --seed @
  {STUDY} -o new --seed @
  colocate predict p --seed @
  {VIRTUAL} --seed @
  {VERIFY} --seed @
  {CALIBRATE} --seed @
  simulate --machine henri --cores 1 --seed @
  trace overhead --repeat 1 --seed @ -- true
  trace simulate-clocks --clocks 2 --seed @
positive:
  {STUDY} -o new --timeout @
  {STUDY} -o new --budget @
  colocate schedule --matrix matrix.csv --limit @
  colocate schedule jobs.toml --matrix matrix.csv --seconds @
  colocate measure apps.toml -o new --timeout @
  {VIRTUAL} --timeout @
  {VIRTUAL} --budget @
  {VERIFY} --timeout @
  diagnose --profile p --verify {cores} --timeout @
  {CALIBRATE} --timeout @
  {CALIBRATE} --half-width @
  overlap --t-comp 1 --t-comm 1 --l-comp @ --l-comm 1.5
  overlap --t-comp 1 --t-comm 1 --l-comp 1.2 --l-comm @
  overlap --work @ --p-comp 1 --p-acc 1 {SPLIT}
  overlap --work 1 --p-comp @ --p-acc 1 {SPLIT}
  overlap --work 1 --p-comp 1 --p-acc @ {SPLIT}
  simulate --machine henri --cores 1 --copy @
  trace overhead --repeat 1 --limit @ -- true
  trace simulate-clocks --clocks 2 --seconds @
  trace simulate-clocks --clocks 2 --every @
duration:
  {VIRTUAL} --budget @
percentage:
  compare run run --at-least @
  compare run run --fail-above @
amount:
  {STUDY} -o new --noise @
  overlap --t-comp 1 --t-comm @ --l-comp 1.2 --l-comm 1.5
  overlap --t-comp @ {SPLIT}
  {VIRTUAL} --noise @
  {VERIFY} --noise @
  {CALIBRATE} --noise @
  overlap --work 1 --p-comp 1 --p-acc 1 --w @ {SPLIT}
  predict henri --cores 4 --comp-node 0 --intensity @
  simulate --machine henri --cores 1 --intensity @
  {RECORD} --sync @ -- true
size:
  colocate predict p --model model.json --llc @
  {CALIBRATE} --sizes @
  explain run --size @
  fit curves --size @ -o new.json
  import curves.csv -o new --size @
  predict henri --size @
  {RECORD} --buffer @ -- true
  trace overhead --repeat 1 --buffer @ -- true
  broadcast simulate --size @
  broadcast simulate --segment @
  broadcast factorize --times times.json --segment @
  broadcast simulate --window @
  broadcast areas --size @
  broadcast areas --segment @
  broadcast bench --segment @
bytes:
  overlap henri {MODELLED} --comp-bytes @ --comm-bytes 1MB
  overlap henri {MODELLED} --comp-bytes 1GB --comm-bytes @
sizes:
  {VIRTUAL} --sizes @
  simulate --machine henri --cores 1 --sizes @
  broadcast tune --sizes @
  broadcast bench --sizes @
  profile calibrate --sizes @
list:
  {VIRTUAL} --comp-cores @
  simulate --machine henri --cores @
  trace overhead --threads @ -- true
  broadcast bench --recipients @
  profile calibrate --nic 50MB/s --nic-nodes @
  profile record -o new --nic 50MB/s --nic-nodes @ -- mpirun true
  nic run --bandwidth 50MB/s --nodes @ -- true
  run diffusion --machine henri --no-report --out new --nodes @
setting:
  {VIRTUAL} --set @
  {CALIBRATE} --set @
parameter:
  simulate --machine henri --cores 1 --set @
name:
  study @ --machine henri -o new
  {STUDY} -o new --only @
  study tan2012 --dry-run --launcher @
  colocate schedule --matrix matrix.csv --apart @
  {VIRTUAL} --kernels @
  {CALIBRATE} --kernels @
  explain run --kernel @
  fit curves --kernel @ -o new.json
  import curves.csv -o new --kernel @
  run sizes --dry-run --launcher @
  advise henri --job job.toml --verify --run new --launcher @
  calibrate --run new --launcher @
  trace merge t -o new.json --to @
  trace merge t -o new.pftrace --categories @
  {RECORD} --policy @ -- true
  {RECORD} --adapters @ -- true
  trace overhead --repeat 1 --adapters @ -- true
  trace simulate-clocks --clock @
  trace simulate-clocks --link @
  trace simulate-clocks --bad @
  broadcast simulate --tree @
  broadcast factorize --times times.json --grid @
  broadcast factorize --times times.json --tree @
  broadcast factorize --times times.json --bandwidth @
  broadcast factorize --times times.json --latency @
  broadcast factorize --times times.json --overhead @
  broadcast simulate --bandwidth @
  broadcast simulate --latency @
  broadcast simulate --overhead @
  broadcast simulate --platform fat-tree --uplink @
  broadcast simulate --platform fat-tree --order @
  broadcast areas --bandwidth @
  broadcast areas --latency @
  broadcast areas --overhead @
  broadcast areas --tree @
  broadcast areas --priorities @
  broadcast tune --bandwidth @
  broadcast tune --latency @
  broadcast tune --overhead @
  broadcast bench --trees @
  broadcast bench --launcher @
  profile calibrate --launcher @
  profile calibrate --nic @
  profile record -o new --nic @ -- mpirun true
  nic run --bandwidth @ -- true
text:
  profile calibrate --nic 50MB/s --nic-name @
  profile record -o new --nic 50MB/s --nic-name @ -- mpirun true
  nic run --bandwidth 50MB/s --name @ -- true
  {RECORD} --categories @ -- true
  {RECORD} --without @ -- true
  trace overhead --repeat 1 --categories @ -- true
  trace overhead --repeat 1 --metric @ -- true
  trace record -o @ -- true
  diagnose --profile p --verify @
  diagnose --profile p --verify {cores} --number @
pattern:
  trace overlap t --computation @
  trace overlap t --communication @
choice:
  export run -o new --format @
  advise henri --job job.toml --model @
  predict henri --model @
  predict henri --comm-node 0 --direction @
  evaluate curves henri -o new.svg --model @
  overlap henri {MODELLED} {STEP} --model @
  overlap {TIMES} -o new.svg --figure @
  simulate --machine henri --kernel @
  simulate --machine henri --direction @
hosts:
  study tan2012 --launcher mpiexec -o new --hosts @
  {LIVE} --hosts @
  advise henri --job job.toml --verify --launcher mpiexec --run new --hosts @
  calibrate --launcher mpiexec --run new --hosts @
  broadcast bench --launcher mpiexec --hosts @
  profile calibrate --launcher mpiexec --hosts @
mpi:
  colocate calibrate run --mpi @
  study tan2012 -o new --mpi @
  broadcast bench --mpi @
  profile calibrate --mpi @
  doctor --mpi @
  run quick --dry-run --mpi @
  advise henri --job job.toml --verify --run new --mpi @
  calibrate --run new --mpi @
  {RECORD} --mpi @ -- mpirun true
  trace overhead --repeat 1 --mpi @ -- mpirun true
  profile record -o new --mpi @ -- mpirun true
  diagnose --profile-out new --mpi @ -- true
group:
  predict henri --group @
copy:
  predict henri --copy @
memory:
  colocate predict p --model model.json --memory @
cache:
  colocate predict p --model model.json --cache @
part:
  trace merge t -o new.html --from @
  trace merge t -o new.html --until @
"""
"""Below each kind of value the command lines where it can stand."""

LINES = """
nonesuch
--nonesuch
run --nonesuch
run
run quick extra
show
show run run
compare run
export run
trace nonesuch
machine nonesuch
machine show
machine from-run run
import curves.csv
colocate measure
colocate measure apps.toml
colocate measure apps.toml -o missing --resume
colocate measure apps.toml -o run --resume
fit
evaluate run
predict
explain
advise henri
diagnose
diagnose --profile p -- true
diagnose --profile p --number x
profile what-if
simulate
overlap
trace record
trace overhead
trace merge t
trace dag t
trace stat
trace activity
run quick --seed
run quick --seed 1 --seed 2
show run --json=yes
run quick --resume run
run --resume run --seed 1
run --retry-failed
study
study denis2021 --resume run
study --resume run --quick
{STUDY} --mpi openmpi
{VIRTUAL} --launcher local
{VIRTUAL} --mpi openmpi
{VIRTUAL} --hosts a
run sizes --noise 0.1
run sizes --nodes 4 --machine henri --out new
calibrate --resume curves --seed 1
advise henri --job job.toml --seed 1
advise henri --job job.toml --run new
overlap --table langguth2018 --work 3
overlap henri {MODELLED}
overlap {TIMES} --figure plane
overlap {TIMES} --faithful
overlap {TIMES} --w 0.5
predict henri --all --comp-node 0
predict henri --comp-node 0
predict henri --faithful --model flow
predict henri --stacked
predict henri --load load.toml --cores 3
predict henri --direction send
predict henri --intensity 1
evaluate curves henri --stacked
simulate --machine henri --questions --cores 3
simulate --machine henri --parameters --questions -o x.svg
explain run run
fit curves curves
colocate calibrate
colocate calibrate run
colocate predict p --memory p=1GB/s
colocate predict p --cache p=1MiB@1GB/s
colocate predict p --llc 1MiB
colocate predict p --model henri
fit run -o new.json
report run --job job.toml
trace merge t -o t.pftrace --from 1
trace merge t -o t.html --from 2 --until 1
trace overhead -- nonesuch-program
{RECORD} -- nonesuch-program
trace overhead --threads 1 --repeat 1
run quick --kernels nonesuch
run cholesky --set builds=openmp
run cholesky --set columns=3
broadcast simulate --nodes 4 --recipients 3
broadcast simulate --racks 4
broadcast simulate --order rack
run diffusion --set cells=1 --machine henri --out new
trace overlap
trace overlap t --compare
trace overlap t t t --compare
trace overlap t t --compare -o new.svg
"""
"""Whole command lines that are wrong."""

MACHINE_FAILED = ("trace ", "/x", "missing/x")
"""A target or value with one of these may end with exit code 1: a program or the disk refused."""


def targets() -> Iterator[tuple[str, list[str]]]:
    """Kind of value and words of every target."""
    kind = ""
    for line in TARGETS.splitlines():
        if line.endswith(":") and not line.startswith(" "):
            kind = line[:-1]
        elif line:
            yield kind, _words(line)


def cases() -> Iterator[list[str]]:
    """The words of every wrong command line."""
    for kind, words in targets():
        for value in VALUES[kind]:
            yield [word.replace("@", value) for word in words]
    yield from (_words(line) for line in LINES.splitlines() if line)


def _words(line: str) -> list[str]:
    for short, text in SHORT.items():
        line = line.replace(short, text)
    return line.split()
