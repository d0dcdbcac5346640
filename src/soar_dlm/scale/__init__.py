"""Past one process: batches that resume, and Ray for many of them."""
