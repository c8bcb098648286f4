"""Who answers which request: `HANDLERS`, a module for each group of requests."""

from workbench.engine.handlers import (
    draft_requests,
    fleet_reporting,
    question_requests,
    run_requests,
    session_requests,
    watch_requests,
    workspace_requests,
)
from workbench.engine.handlers.registry import Handlers

HANDLERS = Handlers(
    draft_requests.handles,
    fleet_reporting.handles,
    question_requests.handles,
    run_requests.handles,
    session_requests.handles,
    watch_requests.handles,
    workspace_requests.handles,
)
