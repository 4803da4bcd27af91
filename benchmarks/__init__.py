"""Figures that are reported and never asserted: `python -m benchmarks` runs them all, or one by its name.

imports     time and memory of ``import starvelab`` beside mlsysim 0.3.0
solve       solves and points per second beside mlsysim 0.1.1
simulate    batches per second of the simulation beside simpy
notebooks   seconds to run each solution notebook
repaint     milliseconds from a slider to the repainted picture in a browser
validation  the model beside published measurements
own_loader  the model beside this machine's own loaders
diagnose    whether planted bottlenecks are named, and how soon
advise      whether the advised number of workers is the best, on twelve planted jobs
grading     submissions a minute, in the sandbox and in kernels as nbgrader starts them

The lab grew out of a tutorial on mlsysim, whose releases 0.1.1 and 0.3.0 exclude each other. Each lives in an
environment of its own, and a benchmark is told its interpreter, by an option or by an environment variable::

    python -m venv old && old/bin/python -m pip install mlsysim==0.1.1
    python -m venv new && new/bin/python -m pip install mlsysim==0.3.0
    export STARVELAB_MLSYSIM_0_1=old/bin/python STARVELAB_MLSYSIM_0_3=new/bin/python

Without them the lab's own side is measured alone. Sides take turns within one run, so that a busy machine
slows both; ratios are taken turn by turn.
"""
