"""Results: from the samples of a run to its points, whether the run can be trusted, and how runs compare."""
