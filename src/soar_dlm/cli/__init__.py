"""The command ``soar``. Nothing here imports PyTorch before a model is asked for."""
