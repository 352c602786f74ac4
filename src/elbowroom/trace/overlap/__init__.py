"""What overlap hides in a trace, and what hiding costs: readers of traces, and the analysis of events."""
