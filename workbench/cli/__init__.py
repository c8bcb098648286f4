"""The command line: wires everything together.

Data goes to standard output, talk to standard error; exit codes are 0 (done), 1 (a finding),
2 (wrong use), 3 (lab or environment failure) and 130 (interrupted).
"""

from __future__ import annotations

import errno
import os
import signal
import sys
from contextlib import suppress

DEBUG_OPTION = "--debug"
STANDARD_STREAMS = (0, 1, 2)
_REFUSED = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""Of a write to the output: no file is named."""


def main() -> None:
    """Entry point of `workbench`: runs a command, turns errors into sentences and exit codes."""
    from workbench.cli.context import say
    from workbench.domain.errors import INTERRUPTED, LAB_FAILURE, WorkbenchError

    _open_closed_streams()
    debug = DEBUG_OPTION in sys.argv[1:]
    try:
        from workbench.cli.app import app

        app()
    except WorkbenchError as error:
        if debug:
            raise
        say(str(error))
        if error.exit_code == INTERRUPTED:  # a campaign that was stopped
            _end_interrupted()
        raise SystemExit(error.exit_code) from None
    except KeyboardInterrupt:
        _end_interrupted()
        raise SystemExit(INTERRUPTED) from None
    except SystemExit as end:
        if end.code == INTERRUPTED:
            _end_interrupted()
        if isinstance(end.__context__, BrokenPipeError):
            # The reader of our output went away (`workbench samples x | head`): no finding.
            raise SystemExit(0) from None
        if refused := _refused_output():
            say(refused)
            raise SystemExit(LAB_FAILURE) from None
        raise
    except Exception as error:  # what nobody expected is logged whole, and said in one sentence
        if debug:
            raise
        if isinstance(error, OSError) and error.errno in _REFUSED and error.filename is None:
            say(_refused_output() or _sentence(error))
            raise SystemExit(LAB_FAILURE) from None
        from workbench.cli.context import log_unexpected, unwritable

        if workspace := unwritable(error):
            say(str(workspace))
            raise SystemExit(workspace.exit_code) from None
        path = log_unexpected(error)
        kept = f"The whole trace is in {path}; run" if path else "Run"
        say(
            f"Unexpected {type(error).__name__}: {error}. {kept} again with --debug to see it here."
        )
        raise SystemExit(LAB_FAILURE) from None  # it is no finding, as `compare` would mean it


def _end_interrupted() -> None:
    """Who presses Ctrl-C again as the process ends gets no stack trace for it.

    Where a thread still computes the process ends here: Python would take modules down under it,
    and extensions would tell at length what that leaves behind.
    """
    from workbench.computing import still_computes
    from workbench.domain.errors import INTERRUPTED

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if still_computes():
        with suppress(OSError, ValueError):  # closed, or a pipe that nobody reads
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(INTERRUPTED)


def _open_closed_streams() -> None:
    """What was closed for us (`>&-`) goes nowhere: the next file that is opened would be taken for
    it, by us and by every program that we start."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= STANDARD_STREAMS[-1]:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    for name, number in zip(("stdin", "stdout", "stderr"), STANDARD_STREAMS, strict=True):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "r" if number == 0 else "w"))


def _refused_output() -> str:
    """Why standard output takes no more, as on a full disk; empty where it does."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        return ""
    except OSError as error:
        # What it still holds must not be tried once more as Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _sentence(error)
    return ""


def _sentence(error: OSError) -> str:
    return f"The output cannot be written: {error.strerror}. Make room there, or write elsewhere."
