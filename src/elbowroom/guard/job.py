"""One receipt for a job whose nodes each have a guard.

The guards write their receipts where the job ends, into the same folder; that of the node of rank 0 waits for
the others' and names each node in its own. Receipts of other jobs there are known by the name that the
launcher gives a job.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

import msgspec

from elbowroom.errors import ElbowroomError
from elbowroom.guard.node import rank_of
from elbowroom.guard.receipt import RECEIPT, NodeEntry, Receipt

PATIENCE = 10.0
"""Seconds for which the other nodes' receipts are waited for: ranks of a job end at about the same time."""
_JOBS = (("PMIX_NAMESPACE",), ("SLURM_JOB_ID", "SLURM_STEP_ID"))
_SIZES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS")
_NAP = 0.05


def job_of(env: Mapping[str, str]) -> str:
    """The name that the launcher gave this job; "" where it gave none."""
    return next((".".join(env[one] for one in names) for names in _JOBS if set(names) <= set(env)), "")


def ranks_of_job(env: Mapping[str, str]) -> int:
    """How many ranks the launcher started; 0 where it does not say."""
    return next((int(env[name]) for name in _SIZES if env.get(name, "").isdecimal()), 0)


def path_of_node(path: Path, receipt: Receipt, env: Mapping[str, str]) -> Path:
    """The guard on the node of rank 0 writes `path`; those that a launcher started on other nodes write files
    next to it, by the first rank of each.
    """
    rank = rank_of(env)
    first = rank if receipt.first_rank is None else receipt.first_rank
    return path if rank is None or not first else path.with_name(f"{path.stem}-rank{first}{path.suffix}")


def write_receipt(path: Path, receipt: Receipt, env: Mapping[str, str]) -> Receipt:
    """Writes the receipt of this node, or, on the node of rank 0, that of the job, and gives it."""
    receipt = msgspec.structs.replace(receipt, job=job_of(env))
    if rank_of(env) is not None and receipt.first_rank == 0:
        receipt = _joined(path, receipt, ranks_of_job(env))
    RECEIPT.write(path_of_node(path, receipt, env), receipt)
    return receipt


def _joined(path: Path, receipt: Receipt, ranks: int) -> Receipt:
    """With the other nodes of the job; a sentence says which ranks are missing."""
    nodes = {entry.first_rank: entry for entry in (_entry(receipt),)}
    reasons = receipt.reasons
    if receipt.job:
        end = time.monotonic() + PATIENCE
        while (missing := ranks - sum(one.ranks for one in nodes.values())) > 0 and time.monotonic() < end:
            time.sleep(_NAP)
            for other in _others(path, receipt):
                nodes[other.first_rank] = _entry(other)
        if missing > 0:
            where = f"in {path.absolute().parent}, or did not write one"
            reasons = (*reasons, f"the nodes of {missing} of {ranks} ranks have no receipt {where}")
    elif ranks > receipt.ranks:
        reasons = (*reasons, "this launcher does not name its jobs: each node has a receipt of its own")
    ordered = tuple(nodes[first] for first in sorted(nodes, key=lambda one: one or 0))
    return msgspec.structs.replace(receipt, nodes=ordered, reasons=reasons)


def _others(path: Path, receipt: Receipt) -> list[Receipt]:
    """The receipts of the job's other nodes that are there."""
    others = []
    for file in path.absolute().parent.glob(f"{path.stem}-rank*{path.suffix}"):
        try:
            other = RECEIPT.read(file)
        except ElbowroomError:  # of another release, or another user's
            continue
        if (other.job, other.command) == (receipt.job, receipt.command):
            others.append(other)
    return others


def _entry(receipt: Receipt) -> NodeEntry:
    return NodeEntry(
        host=receipt.host,
        first_rank=receipt.first_rank,
        ranks=receipt.ranks,
        verdict=receipt.verdict,
        gain=receipt.gain,
        chosen=receipt.chosen,
        steps=receipt.steps,
        step_seconds=receipt.step_seconds,
    )
