"""A batch from its first event to its result: what happens to it, how it stands, and who is told. Nothing here draws."""
