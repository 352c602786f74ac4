"""Draws pictures of the terminal and of the HTML pages, from the code of any checkout.

    python tools/pictures.py CHECKOUT before|after [--out docs/images/desk] [--only quick profile ...]

Each picture is what a user sees after one command: the last lines of an 80-column terminal (SVG), and the
first screen of a page in Chromium at 1200 x 900 (PNG). All inputs are virtual machines and a made-up profile,
so the same code gives the same pictures, up to dates and durations. A command that the checkout does not have
gives no picture.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import pty
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from PIL import Image
from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

ROOT = Path(__file__).resolve().parents[1]
COLUMNS, LINES = 80, 34
SCREEN = (1200, 900)
COLOURS = 64
LARGEST = 150_000
"""Bytes of a picture."""
MADE_PROFILE = """
import sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from made_profiles import MS, MadeJob
job = MadeJob(8)
for _ in range(12):
    job.mark()
    job.compute(30 * MS, 0.05)
    job.exchange(4_000_000)
    job.allreduce()
job.mark()
job.write(Path("profile"))
"""


class Shot(NamedTuple):
    """What is typed, the page that is then there, and the command that writes it if that one does not."""

    name: str
    command: str
    page: str = ""
    writes_page: str = ""


SHOTS = (
    Shot("quick", "elbowroom run quick --machine henri --out runs/quick", "runs/quick/report.html"),
    Shot("profile", "elbowroom profile show profile -o profile.html", "profile.html"),
    Shot(
        "diagnose",
        "elbowroom diagnose --profile profile --model model.json --cores 17 --job-out job.toml",
        "job.html",
        "elbowroom report runs/model --model fitted.json --job job.toml -o job.html",
    ),
    Shot("study", "elbowroom study swartvagher2022 --quick --machine henri --out study", "study/report.html"),
    Shot("tour", "elbowroom tour", "tour/henri/report.html", "elbowroom report tour/henri"),
)


def typed(command: str, folder: Path, checkout: Path) -> tuple[int, str]:
    """Exit code and terminal output, with its colours, of a command in `folder`."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(checkout / "src"),
        "COLUMNS": str(COLUMNS),
        "LINES": "50",
        "TERM": "xterm-256color",
        "HOME": str(folder),
    }
    words = [sys.executable, "-m", *shlex.split(command)]
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        words, cwd=folder, env=environment, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    )
    os.close(theirs)
    output = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:
            break
        if not part:
            break
        output += part
    os.close(ours)
    return child.wait(), output.decode(errors="replace")


def shown(output: str) -> list[str]:
    """The lines that stay on the screen: of a line that was written over, the last state."""
    output = re.sub(r"\x1b\[\??[0-9;]*[hlKJABCDG]", "", output.replace("\r\n", "\n"))
    lines = [line.rpartition("\r")[2] for line in output.split("\n")]
    while lines and not lines[-1].strip():
        lines.pop()
    return lines


def draw_terminal(command: str, output: str, target: Path) -> None:
    """The last lines of the terminal as SVG."""
    console = Console(
        record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, color_system="truecolor"
    )
    lines = shown(output)
    cut = len(lines) > LINES
    console.print(Text(f"$ {command}", style="bold"))
    if cut:
        console.print(Text(f"... {len(lines) - LINES} lines above ...", style="dim"))
    for line in lines[-LINES:]:
        console.print(Text.from_ansi(line), soft_wrap=False)
    svg = console.export_svg(title="elbowroom", theme=MONOKAI, unique_id=target.stem)
    # The fonts of the template come from the network; those of the reader's machine do.
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)
    target.write_text(svg.replace("Fira Code", "monospace") + "\n", encoding="utf-8")


def draw_page(page: Path, target: Path) -> None:
    """The first screen of a page as PNG with few colours."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        raise SystemExit("chromium is not installed (apt install chromium)")
    with tempfile.TemporaryDirectory() as profile:
        flags = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-lcd-text")
        subprocess.run(
            [
                chromium,
                *flags,
                f"--user-data-dir={profile}",
                f"--window-size={SCREEN[0]},{SCREEN[1]}",
                f"--screenshot={target}",
                page.resolve().as_uri(),
            ],
            check=True,
            capture_output=True,
            timeout=120,
        )
    with Image.open(target) as image:
        small = image.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    small.save(target, optimize=True)
    if target.stat().st_size > LARGEST:
        raise SystemExit(f"{target} has {target.stat().st_size} bytes, more than {LARGEST}")


def prepare(folder: Path, checkout: Path) -> None:
    """What the commands read: a profile of a made-up job, and a model of the machine that it names."""
    subprocess.run(
        [sys.executable, "-c", MADE_PROFILE, str(checkout / "tests")],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(checkout / "src")},
        check=True,
    )
    for command in ("run model --machine henri --out runs/model", "fit runs/model -o fitted.json"):
        code, output = typed(f"elbowroom {command}", folder, checkout)
        if code:
            raise SystemExit(f"elbowroom {command}: {output}")
    model = json.loads((folder / "fitted.json").read_text())
    # As if it had been measured on the nodes of the profile.
    model["machine"] |= {"name": "node0", "virtual": False}
    (folder / "model.json").write_text(json.dumps(model))


def main(arguments: Sequence[str] | None = None) -> None:
    """Draws all pictures of a checkout."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checkout", type=Path)
    parser.add_argument("state", choices=("before", "after"))
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "images" / "desk")
    parser.add_argument("--only", nargs="+", choices=[shot.name for shot in SHOTS])
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    checkout = options.checkout.resolve()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        prepare(folder, checkout)
        for shot in SHOTS:
            if options.only and shot.name not in options.only:
                continue
            code, output = typed(shot.command, folder, checkout)
            if code == 2:
                print(f"{shot.name}: no picture: {' '.join(shown(output))}")
                continue
            terminal = options.out / f"{shot.name}-terminal-{options.state}.svg"
            draw_terminal(shot.command, output, terminal)
            print(terminal)
            if shot.writes_page:
                typed(shot.writes_page, folder, checkout)
            page = folder / shot.page
            if shot.page and page.is_file():
                picture = options.out / f"{shot.name}-report-{options.state}.png"
                draw_page(page, picture)
                print(picture)


if __name__ == "__main__":
    main()
