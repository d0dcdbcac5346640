"""Masked language models: loading them by name and running them the same way whatever their family."""
