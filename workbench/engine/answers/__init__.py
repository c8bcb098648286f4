"""Questions about chains and sessions: predicted, compared, retrained, recommended, handed on."""
