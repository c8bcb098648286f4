"""Sessions in formats for others, by entry point (`workbench.exports`).

An export is `async (source: ExportSource, destination: Path) -> tuple[Path, ...]`: it writes what
`source` holds and returns the files that it wrote, the main one first. See `base.ExportSource`.
"""
