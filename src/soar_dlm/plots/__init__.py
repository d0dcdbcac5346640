"""The paper's figures, drawn from result folders and traces, never from a model (extra ``plots``)."""

FIGURES = ("confidence", "method", "pareto", "threshold", "beam", "order", "modes", "path", "lengths")
"""Their names, in the order of the paper; here, so that the command can list them without loading anything."""
