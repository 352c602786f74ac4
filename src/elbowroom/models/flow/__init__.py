"""FLOW: streams that share the machine's resources, with intervals of its own."""

from elbowroom.models.registry import Kind

KINDS = (Kind(name="flow", title="FLOW", module="elbowroom.models.flow.model", preference=3),)
