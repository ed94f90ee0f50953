"""How people write and see values: paths, JSON, previews."""
