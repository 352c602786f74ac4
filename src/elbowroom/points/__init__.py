"""Points, what they run (a file for each workload), and what their results hold besides two sides."""
