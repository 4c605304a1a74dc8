"""Bringing accepted work together, and onto a branch."""
