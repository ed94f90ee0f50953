"""What differs between two states, or two texts."""
