"""Advice as the CSV file that NCCL's example tuner plugin reads (ext-tuner/example of NCCL).

A line is colltype,minbytes,maxbytes,algorithm,protocol,channels,nNodes,nRanks,numPipeOps,regBuff. NCCL runs
a channel on an SM, so that the channels are the SMs to leave to communication; -1 means any, and of channels
the library's own choice. The plugin knows no missing algorithm or protocol: it takes unknown words for ring
and simple. So a line is written only where the job names both, else a comment says n/a and why.

Source: https://github.com/NVIDIA/nccl/tree/master/ext-tuner/example, plugin.c and nccl_tuner.conf.
"""

from __future__ import annotations

from elbowroom.advise.gpu_advice import GpuAdvice

HEADER = "colltype,minbytes,maxbytes,algorithm,protocol,channels,nNodes,nRanks,numPipeOps,regBuff"

ANY = -1

LONGEST = 250
"""Characters of a line: the plugin's buffer has 256."""


def nccl_tuner(advice: GpuAdvice) -> str:
    """The text of the file."""
    collective = advice.job.nccl
    virtual = ", a virtual machine" if advice.origin == "virtual" else ""
    lines = [
        f"# elbowroom {advice.elbowroom}: {advice.device or 'accelerator'}, {advice.sms} SMs{virtual}",
        f"# {HEADER}",
    ]
    channels, reason = _channels(advice)
    lines.append(f"# channels: {reason}")
    if collective is None:
        lines.append("# n/a: the job names no collective; add [gpu.nccl] with colltype, algorithm, protocol")
    elif collective.algorithm is None or collective.protocol is None:
        lines.append(
            f"# n/a: {collective.colltype} without algorithm and protocol, which elbowroom does not know"
        )
    else:
        fields = (
            collective.colltype, collective.minbytes, collective.maxbytes, collective.algorithm,
            collective.protocol, channels, collective.nodes, collective.ranks, ANY, ANY,
        )  # fmt: skip
        lines.append(",".join(map(str, fields)))
    return "".join(f"{line[:LONGEST]}\n" for line in lines)


def _channels(advice: GpuAdvice) -> tuple[int, str]:
    """The number of channels, and why."""
    answer = next(item for item in advice.answers if item.question == "sms")
    if not isinstance(answer.advised, int) or answer.advised < 1:
        return ANY, f"n/a, NCCL's own choice: {answer.reason}"
    return answer.advised, answer.reason
