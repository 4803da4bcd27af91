"""The one description of an input pipeline in front of an accelerator, and what can be asked of it.

Its parts are put together in `starvelab.model`, and each verb loads what it needs when it is called.
"""

from ._pipeline import Pipeline

__all__ = ["Pipeline"]
