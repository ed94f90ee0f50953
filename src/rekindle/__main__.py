"""`python -m rekindle` is the command `rekindle`."""

from .cli import main

if __name__ == "__main__":
    main()
