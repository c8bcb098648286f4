"""Why an operating point is as it is: evidence of its components, rules over it, verdicts.

Pure: measurements in, a `domain.diagnoses.Diagnosis` out. Rules are entry points
(`workbench.diagnosis`); `rules.py` is the one table of those that ship.
"""
