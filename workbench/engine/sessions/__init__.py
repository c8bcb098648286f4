"""What the engine keeps of sessions: their files, who follows them, facts written down."""
