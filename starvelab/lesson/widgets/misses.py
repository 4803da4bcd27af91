"""What a learner says of a miss, in a box under the answer; kept where `report(learned=...)` keeps it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ipywidgets

from ..lab_report.contents import MAX_LESSON
from . import words
from ._report import keep_lesson, lessons
from .cells import LOG, CellLog
from .keyboard import Box, spoken

ASKED = "What did this teach you?"
KEPT = "It is kept for your lab report."


class MissBox(Box):
    """A text box whose text is kept in the lab report as soon as the learner leaves it.

    Attributes
    ----------
    text : Textarea
        One or two sentences; with what was kept before.
    message : HTML
        What was kept, or why nothing was.
    """

    def __init__(self, key: str, folder: Path, log: CellLog = LOG) -> None:
        self._key, self._folder, self._log = key, folder, log
        self.text = ipywidgets.Textarea(
            value=lessons(folder).get(key, ""),
            description=ASKED,
            placeholder="One or two sentences, for your lab report",
            continuous_update=False,
            rows=2,
            style={"description_width": "initial"},
            layout={"width": "46em", "max_width": "100%"},
        )
        self.message = spoken()
        self.text.observe(self._changed, names="value")
        super().__init__(ASKED, [self.text, self.message])

    # Any: what ipywidgets tells of a change.
    def _changed(self, _change: Any) -> None:
        # Nothing raised in a callback reaches the page: every error has to be shown in the widget.
        text = words.one_line(self.text.value)
        try:
            keep_lesson(self._key, text, self._folder, self._log)
        except OSError as error:
            reason = error.strerror or str(error)
            self.message.value = words.notice(
                f"A sentence is kept in report.html, and that could not be written ({reason}). "
                "Make the folder writable, then change the sentence once more.",
                "Problem",
            )
        except Exception as error:
            self.message.value = words.notice(f"{type(error).__name__}: {error}", "Problem")
        else:
            too_long = len(text) > MAX_LESSON
            kept = f"The first {MAX_LESSON} characters are kept for your lab report." if too_long else KEPT
            self.message.value = words.notice(kept if text else "Nothing is kept of this miss.")
