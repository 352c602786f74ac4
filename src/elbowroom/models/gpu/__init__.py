"""Models of an accelerator: what kernels and copies keep while they share its multiprocessors and memory."""
