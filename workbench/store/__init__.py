"""The session file. Only this room speaks SQL.

==============  =========================================================================
module          what it holds
==============  =========================================================================
`session_file`  `SessionFile`: create, open, append, view, page through, export
`catalogue`     names, paths and the list of sessions, without opening their files
`bundle`        a session as one Parquet file per table, out and in
`strangers`     what a bundle may bring: sizes before it is read, sense before others read it
`acknowledged`  the second copy of what only the write-ahead log holds
`writer`        the one thread that writes a session file, in grouped commits
`database`      DuckDB connections: limits, locks, a damaged write-ahead log
`schema`        numbered migrations (`migrations/*.sql`) and the schema's version
`rows`          domain values to rows
`reading`       rows to domain values
`flat`          the table of samples as CSV or Parquet
`recordings`    a session read whole
==============  =========================================================================
"""
