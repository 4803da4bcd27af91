"""Figures that are reported and never asserted. `python -m benchmarks --help` names them.

The lab grew out of a tutorial on mlsysim, whose releases 0.1.1 and 0.3.0 exclude each other. Each lives in an
environment of its own, and a benchmark is told its interpreter, by an option or by an environment variable::

    python -m venv old && old/bin/python -m pip install mlsysim==0.1.1
    python -m venv new && new/bin/python -m pip install mlsysim==0.3.0
    export STARVELAB_MLSYSIM_0_1=old/bin/python STARVELAB_MLSYSIM_0_3=new/bin/python

Without them the lab's own side is measured alone. Sides take turns within one run, so that a busy machine
slows both; ratios are taken turn by turn.
"""
