"""`python -m starvelab_doctor` is `starvelab-doctor` on the command line."""

import sys

from .doctor import main

if __name__ == "__main__":
    sys.exit(main())
