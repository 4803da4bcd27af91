#!/usr/bin/env bash
# Gradescope runs this as root, once, when it builds the image.
set -euo pipefail
cd /autograder/source
apt-get update
apt-get install --yes bubblewrap libseccomp2 python3 python3-venv
python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
    echo "The grader needs Python 3.11 or newer, and this image has $(python3 --version). Choose a newer base image, such as Ubuntu 24.04."
    exit 1
}
python3 -m venv /opt/starvelab
/opt/starvelab/bin/pip install --find-links wheels --constraint constraints.txt --requirement requirements.txt
chmod 700 /autograder/source
