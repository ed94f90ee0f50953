"""What all tests share: the same examples in every run, new ones in torture."""

import os

from hypothesis import settings

settings.register_profile("same", derandomize=True, deadline=None, database=None)
settings.register_profile("torture", deadline=None, database=None, print_blob=True)
settings.load_profile("torture" if os.environ.get("REKINDLE_TORTURE") == "1" else "same")
