"""Which jobs share nodes: slowdowns of pairs, the best pairing, and plans of jobs on a cluster's nodes."""
