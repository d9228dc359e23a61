"""One module per question; each has `measure(lab) -> list[Row]`."""
