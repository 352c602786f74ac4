"""Statistics: pure functions from numbers to estimates with intervals."""
