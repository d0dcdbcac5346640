"""Training small masked diffusion models from a recipe."""
