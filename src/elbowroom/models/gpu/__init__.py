"""The accelerator: what kernels and copies keep while they share its multiprocessors and memory."""

from elbowroom.models.registry import Kind

KINDS = (
    Kind(name="gpu", title="accelerator", module="elbowroom.models.gpu.kind", preference=-1, cases=True),
)
