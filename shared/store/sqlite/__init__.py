"""All that is SQLite's own. Nothing outside of this folder imports `sqlite3`."""
