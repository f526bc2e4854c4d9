"""A fleet: several judges with their policies in one file, run together, decided one by one, told about when one fails."""
