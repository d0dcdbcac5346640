"""Measuring: methods compared on the same problems, and the statistics that say what a difference is worth."""
