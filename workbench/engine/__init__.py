"""The process that owns a workspace: it plans, asks, measures, stores, publishes, tells."""
