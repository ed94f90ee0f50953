"""Saves: encoded against the parent, committed together, waited for by threads and tasks."""
