"""Says what to install when this Python cannot make a virtual environment. Runs on old ones too."""

import importlib.util
import sys

python = f"python{sys.version_info[0]}.{sys.version_info[1]}"

if sys.version_info < (3, 11):  # noqa: UP036
    sys.exit(
        f"{python} is too old: rekindle needs Python 3.11 or later\n  -> name a newer one: make PYTHON=python3.12 test"
    )

missing = [name for name in ("venv", "ensurepip") if importlib.util.find_spec(name) is None]
if missing:
    sys.exit(
        f"{sys.executable} cannot make a virtual environment: it has no {' and no '.join(missing)}\n"
        f"  -> Debian, Ubuntu: sudo apt install {python}-venv\n"
        "  -> Fedora: sudo dnf install python3-pip\n"
        "  -> or name another: make PYTHON=/path/to/python3 test"
    )
