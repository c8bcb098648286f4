"""The command line: wires everything together.

Data goes to standard output, talk to standard error; exit codes are 0 (done), 1 (a finding),
2 (wrong use), 3 (lab or environment failure) and 130 (interrupted).
"""

from __future__ import annotations

import sys

DEBUG_OPTION = "--debug"


def main() -> None:
    """Entry point of `workbench`: runs a command, turns errors into sentences and exit codes."""
    from workbench.cli.context import say
    from workbench.domain.errors import INTERRUPTED, LAB_FAILURE, WorkbenchError

    debug = DEBUG_OPTION in sys.argv[1:]
    try:
        from workbench.cli.app import app

        app()
    except WorkbenchError as error:
        if debug:
            raise
        say(str(error))
        raise SystemExit(error.exit_code) from None
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):
            # The reader of our output went away (`workbench samples x | head`): no finding.
            raise SystemExit(0) from None
        raise
    except Exception as error:  # what nobody expected is logged whole, and said in one sentence
        if debug:
            raise
        from workbench.cli.context import log_unexpected

        path = log_unexpected(error)
        say(
            f"Unexpected {type(error).__name__}: {error}. The whole trace is in {path}; "
            "run again with --debug to see it here."
        )
        raise SystemExit(LAB_FAILURE) from None  # it is no finding, as `compare` would mean it
