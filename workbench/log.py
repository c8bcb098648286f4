"""The log file of a workspace: JSON lines, rotated. Stack traces go here, never to a user.

Rooms below the engine may use the standard library's `logging` under `workbench.`; it ends in the
same file.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

import structlog

from workbench import files

LOG_BYTES = 5_000_000
LOG_FILES = 3
ROOT = "workbench"

_SHARED: tuple[structlog.types.Processor, ...] = (
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.processors.format_exc_info,
)


class _OwnFile(RotatingFileHandler):
    """Nobody else reads the log: it names people, sessions and paths."""

    def _open(self) -> Any:
        return open(self.baseFilename, self.mode, encoding=self.encoding, opener=files.opener)


def open_log(path: Path) -> Callable[[], None]:
    """Write the log to `path` from now on; returns what closes it again."""
    files.make_folder(path.parent)
    handler = _OwnFile(path, maxBytes=LOG_BYTES, backupCount=LOG_FILES, delay=True)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=list(_SHARED),
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.JSONRenderer(default=str),
            ],
        )
    )
    return _log_to(handler)


def without_log() -> Callable[[], None]:
    """Write no log, and nothing to the terminal in its place; returns what ends that."""
    return _log_to(logging.NullHandler())


def _log_to(handler: logging.Handler) -> Callable[[], None]:
    structlog.configure(
        processors=[*_SHARED, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,
    )
    root = logging.getLogger(ROOT)
    root.setLevel(logging.INFO)
    root.propagate = False  # the terminal belongs to the screen
    root.addHandler(handler)
    logging.raiseExceptions = False  # nor is it where a log on a full disk may complain

    def close() -> None:
        root.removeHandler(handler)
        handler.close()

    return close


def take_over(*names: str) -> None:
    """Have what libraries log go where ours goes, and nowhere where ours does not: they bring
    handlers of their own, which write to the terminal."""
    ours = logging.getLogger(ROOT).handlers or [logging.NullHandler()]
    for name in names:
        root = logging.getLogger(name)
        for each in (*logging.Logger.manager.loggerDict, name):
            if each.startswith(f"{name}."):
                logging.getLogger(each).handlers.clear()
                logging.getLogger(each).propagate = True
        root.handlers[:], root.propagate = ours, False


def logger(name: str) -> Any:
    """The logger of a room, such as `engine`; its lines carry key-value pairs."""
    return structlog.stdlib.get_logger(f"{ROOT}.{name}")
