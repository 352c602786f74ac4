"""Broadcasts over trees: what is simulated and what it gives (lib/broadcast does the work)."""
