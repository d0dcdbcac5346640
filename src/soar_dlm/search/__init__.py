"""The algorithm: which positions to commit next, and which candidates to keep.

Pure functions. What is as large as the vocabulary (confidence, sampling) is PyTorch, on the model's device; what is as
large as the canvas (proposing, merging, pruning) is NumPy on the host, after the one transfer of a step.
This room knows no model, no tokenizer and no request.
"""
