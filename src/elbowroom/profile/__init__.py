"""Profiles of MPI programs: who is on the network, when, and what follows from it."""
