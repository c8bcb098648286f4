"""The session file: DuckDB, and the only room that speaks SQL."""
