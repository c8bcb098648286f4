"""A recommendation in formats for others, by entry point (`workbench.recommendation_exports`).

An export is `(recommendation: Recommendation, context: Context) -> Mapping[str, str]`: file names
and their text, the main file first. It is pure: whoever asks for it writes the files. See `base`.

The group stands beside `workbench.exports` because the contracts differ: those read an open
session, page by page, and write files of their own; and `csv` means another table there.
"""
