"""Experiments: sweeps and suites read into jobs, what is done already, frozen code, and results over seeds (SPEC B)."""
