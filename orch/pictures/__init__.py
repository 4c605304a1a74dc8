"""Pictures of a run: its graph as text, mermaid, dot and SVG, its time as text and SVG.

Values in, text out: no database, no terminal, no file. Whatever users wrote is escaped for the
format that it goes into.
"""
