"""What the screens Models and Canary share: how chains are named, and what a proposal says."""
