"""Widgets of the lab: predict, reveal, explore, the score card, and how far one is.

Where this is imported in a notebook, answers that are open and errors of units are shown in one line.
"""

from .errors import install_hint, requiring

with requiring("starvelab.widgets", install_hint("notebooks")):
    from .lesson.my_model import my_model
    from .lesson.widgets._evidence import show_measured
    from .lesson.widgets._explore import Drawing, explore
    from .lesson.widgets._loader import beside_real, load_loader, save_loader
    from .lesson.widgets._moving import play
    from .lesson.widgets._predict import lock_predictions, predict
    from .lesson.widgets._progress import progress, scorecard
    from .lesson.widgets._published import beside_published
    from .lesson.widgets._report import pack, report
    from .lesson.widgets._reveal import reveal
    from .lesson.widgets._yours import beside_lab
    from .lesson.widgets.cells import install
    from .lesson.widgets.endings import finish

__all__ = [
    "Drawing", "beside_lab", "beside_published", "beside_real", "explore", "finish",
    "load_loader", "lock_predictions", "my_model", "pack", "play", "predict", "progress",
    "report", "reveal", "save_loader", "scorecard",
    "show_measured",
]  # fmt: skip

install()
