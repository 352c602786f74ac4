"""An OTF2 archive of any size, as Score-P writes it, by libotf2: MPI calls between regions that compute."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

SOURCE = Path(__file__).with_suffix(".c")


def write_archive(folder: Path, events: int) -> Path | None:
    """Writes about so many events into a new archive; its anchor, or None without libotf2 or a compiler."""
    compiler, config = shutil.which("cc"), shutil.which("pkg-config")
    if compiler is None or config is None:
        return None
    flags = subprocess.run([config, "--cflags", "--libs", "otf2"], capture_output=True, text=True)
    if flags.returncode:
        return None
    program = folder.parent / "write-archive"
    subprocess.run([compiler, "-O2", "-o", program, SOURCE, *flags.stdout.split()], check=True)
    subprocess.run([program, folder, str(events)], check=True)
    return folder / "traces.otf2"
