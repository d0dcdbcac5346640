"""How results and traces look in a notebook. Nothing here is imported before one is shown."""
