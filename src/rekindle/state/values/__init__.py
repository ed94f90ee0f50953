"""What a value is: the types that come back, and their bytes."""
