"""The log of an emulated NIC: what each process sent to other nodes, and when (lib/nic/transfers.hpp).

It is the truth that estimates of network time are compared with.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from elbowroom.errors import UsageError

MAGIC = b"ELBNIC01"

_HEADER = np.dtype(
    [
        ("magic", "S8"),
        ("rank", "<i4"),
        ("node", "<i4"),
        ("process", "<i8"),
        ("bandwidth", "<f8"),
        ("burst", "<f8"),
    ]
)
_TRANSFER = np.dtype(
    [("began", "<u8"), ("ended", "<u8"), ("bytes", "<u8"), ("source", "<i4"), ("target", "<i4")]
)


class Transfers(msgspec.Struct, frozen=True, kw_only=True):
    """N transfers. `began`: when the bytes were first wanted, `ended`: when the NICs had passed them on, s of
    CLOCK_MONOTONIC; `rank`: of the sender, `source` and `target`: nodes; `bandwidth` of the NIC, B/s.
    """

    began: npt.NDArray[np.float64]
    ended: npt.NDArray[np.float64]
    bytes: npt.NDArray[np.int64]
    rank: npt.NDArray[np.int64]
    source: npt.NDArray[np.int64]
    target: npt.NDArray[np.int64]
    bandwidth: float


def read_transfers(folder: Path) -> Transfers:
    """The logs of all processes in a folder of ELBOW_NIC_LOG; UsageError where there is none, or another
    file.
    """
    headers, bodies = [], []
    for path in sorted(folder.glob("rank-*.nic")):
        data = path.read_bytes()
        if len(data) < _HEADER.itemsize or not data.startswith(MAGIC):
            raise UsageError("is no log of an emulated NIC", field="log", value=str(path))
        whole = (len(data) - _HEADER.itemsize) // _TRANSFER.itemsize  # a killed process may leave a part
        headers.append(np.frombuffer(data, _HEADER, 1)[0])
        bodies.append(np.frombuffer(data, _TRANSFER, whole, _HEADER.itemsize))
    if not headers:
        raise UsageError("holds no log of an emulated NIC", field="log", value=str(folder))
    rows = np.concatenate(bodies)
    ranks = np.repeat([int(header["rank"]) for header in headers], [len(body) for body in bodies])
    return Transfers(
        began=rows["began"] / 1e9,
        ended=rows["ended"] / 1e9,
        bytes=rows["bytes"].astype(np.int64),
        rank=ranks.astype(np.int64),
        source=rows["source"].astype(np.int64),
        target=rows["target"].astype(np.int64),
        bandwidth=float(headers[0]["bandwidth"]),
    )
