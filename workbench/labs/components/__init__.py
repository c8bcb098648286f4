"""What a target is made of, wherever it runs: components, their wiring, load through them."""
