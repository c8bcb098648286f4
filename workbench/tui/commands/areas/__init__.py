"""What a user can do, a module for each screen or family of screens (`commands.actions`)."""
