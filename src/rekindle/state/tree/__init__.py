"""A state as it is stored: cut up, written against its parent, read back."""
