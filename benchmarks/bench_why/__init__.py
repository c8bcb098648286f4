"""Causes injected on the Docker lab: does the diagnosis name them?"""
