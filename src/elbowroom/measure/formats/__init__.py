"""Results of a run in the formats of other programs; a module for each, with its text of `Results`."""
