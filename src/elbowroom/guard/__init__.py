"""Avoid interference while a program runs, with a receipt (docs/guide/guard.md)."""
