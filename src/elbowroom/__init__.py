"""elbowroom: how much computation and communication slow each other down."""

__version__ = "0.1.0"
