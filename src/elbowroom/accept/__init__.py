"""Accept the nodes of a site: which of them are slow, in what, and why (README.md)."""
