"""Who answers which request: `HANDLERS`, a module for each group of requests."""

from workbench.engine.handlers import drafts, questions, runs, sessions, workspace
from workbench.engine.handlers.registry import Handlers

HANDLERS = Handlers(
    drafts.handles, questions.handles, runs.handles, sessions.handles, workspace.handles
)
