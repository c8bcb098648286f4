"""Campaigns on a lab: planned, started, measured visit by visit, ended and cleaned up."""
