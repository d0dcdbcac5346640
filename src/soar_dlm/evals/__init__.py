"""Measuring: methods compared on the same problems, with statistics that say what a difference is worth."""
