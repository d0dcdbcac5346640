"""Decoding timed: strategies and caches on one workload, in turns, beside the loops that people write by hand."""
