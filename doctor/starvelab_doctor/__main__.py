"""`python -m starvelab_doctor` is `starvelab-doctor` on the command line."""

from .commands import main

if __name__ == "__main__":
    main()
