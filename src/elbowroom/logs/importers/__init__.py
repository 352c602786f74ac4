"""One module for each benchmark, which declares IMPORTER."""
