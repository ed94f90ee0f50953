"""States: what values are, how they are tracked, shown, stored and compared. No room here knows of storages."""
