"""Where a target lives: real, simulated, recorded."""
