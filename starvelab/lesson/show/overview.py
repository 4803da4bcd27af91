"""The whole pipeline in one picture: the four resources that a batch meets, and what each does with it."""

from __future__ import annotations

from ...model.resources import RESOURCES
from .canvas import new_figure, patch
from .figure import StaticFigure, render_figure

# By the name of the resource: what it does for a training step, and what it passes on.
_WORK = {
    "storage": ("reads the files", "stored samples"),
    "CPU": ("its workers decode, crop,\nflip, and make a batch", "a batch"),
    "link": ("copies the batch", "a copied batch"),
    "accelerator": ("trains on the batch", ""),
}
_WIDE, _HIGH, _APART = 2.3, 1.1, 3.5  # of a box, and from one box to the next


def whole_pipeline() -> StaticFigure:
    """The four resources in the order in which a batch meets them."""
    figure = new_figure(9.6, 1.7)
    axes = figure.add_subplot()
    for place, (name, (work, passed)) in enumerate(_WORK.items()):
        left, resource = _APART * place, RESOURCES[name]
        axes.add_patch(
            patch("FancyBboxPatch", (left, 0), _WIDE, _HIGH, boxstyle="round,pad=0.05", color=resource.color)
        )
        middle = left + _WIDE / 2
        for y, text, weight in ((0.82, name, "bold"), (0.36, work, "normal")):
            axes.text(
                middle, y, text, ha="center", va="center", color=resource.ink, fontsize=9, fontweight=weight
            )
        if passed:
            axes.annotate(
                "",
                (left + _APART - 0.1, _HIGH / 2),
                (left + _WIDE + 0.1, _HIGH / 2),
                arrowprops={"arrowstyle": "->", "linewidth": 1.5},
            )
            between = left + (_WIDE + _APART) / 2
            axes.text(between, -0.12, passed, ha="center", va="top", fontsize=8)
    axes.set(xlim=(-0.1, 3 * _APART + _WIDE + 0.1), ylim=(-0.45, _HIGH + 0.1))
    axes.axis("off")
    each = "; ".join(f"{name}: {work}".replace("\n", " ") for name, (work, _) in _WORK.items())
    caption = "The whole pipeline. While the accelerator trains on a batch, the others work on the next."
    return render_figure(
        figure,
        alt=f"Four boxes with arrows from each to the next. {each}. {caption}",
        caption=caption,
        headers=["resource", "what it does", "what it passes on"],
        rows=[[name, work.replace("\n", " "), passed] for name, (work, passed) in _WORK.items()],
    )
