"""rekindle and its peers, side by side in one run: `python -m bench`."""
