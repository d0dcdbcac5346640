"""Masked language models: loaded by name, and run the same way whatever their family."""
