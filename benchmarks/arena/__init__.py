"""Every strategy compared on the same problems; see ``python -m benchmarks.arena --help``."""
