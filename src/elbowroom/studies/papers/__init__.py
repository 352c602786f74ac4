"""One module for each paper: what it measured, and what it states."""
