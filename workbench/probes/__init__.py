"""Counters of containers, threads and hosts, read from the kernel."""
