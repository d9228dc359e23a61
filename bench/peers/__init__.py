"""The participants, in the order of the table."""
