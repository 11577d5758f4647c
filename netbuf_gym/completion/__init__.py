"""What completion in shells goes by: a table of all that may be typed, and what answers from it."""
