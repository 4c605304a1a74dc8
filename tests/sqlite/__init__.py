"""What is about SQLite itself, and what only its own library can show of a database."""
