"""Statistics: pure functions from samples to summaries, ratios, curves and judgements.

Import from the modules: `summary` and `points` need numpy, the others do not.
"""
