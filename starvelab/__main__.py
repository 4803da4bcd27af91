"""`python -m starvelab` is `starvelab` on the command line."""

from .commands import main

if __name__ == "__main__":
    main()
