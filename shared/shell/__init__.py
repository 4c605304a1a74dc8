"""Command lines, what they print, and how they end."""
