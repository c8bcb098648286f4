"""YAML in, domain out, mistakes located."""
