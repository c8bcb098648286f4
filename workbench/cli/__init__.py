"""The command line: wires everything together."""


def main() -> None:
    """Entry point of `workbench`."""
    raise SystemExit(2)
