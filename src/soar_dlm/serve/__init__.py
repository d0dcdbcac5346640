"""A model behind OpenAI's API, and a page on which to watch it."""
