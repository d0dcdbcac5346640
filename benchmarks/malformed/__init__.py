"""Malformed calls, by the part of the library that they go to: each module makes the cases of some parts."""
