"""What tests read from a picture of lanes."""

import re
from xml.etree import ElementTree

NAME = "{http://www.w3.org/2000/svg}"
LEFT, LENGTH = 110, 500


def words(drawing: str) -> list[str]:
    """Return the texts of a picture but the numbers of batches."""
    texts = ElementTree.fromstring(drawing).iter(f"{NAME}text")
    return [text.text for text in texts if text.get("fill") is None]


def numbers(drawing: str) -> list[str]:
    """Return the numbers of batches that stand in their boxes."""
    texts = ElementTree.fromstring(drawing).iter(f"{NAME}text")
    return [text.text for text in texts if text.get("fill") is not None]


def boxes(drawing: str, fill: str, stroke: str | None = "any") -> list[tuple[float, float]]:
    """Return start and end of each box with that fill, as shares of the time that is drawn."""
    found = []
    for path in ElementTree.fromstring(drawing).iter(f"{NAME}path"):
        looks = (path.get("fill") or "").lower() == fill.lower()
        if looks and (stroke == "any" or path.get("stroke") == stroke):
            for x, width in re.findall(r"M([\d.]+) \d+h([\d.]+)", path.get("d")):
                start = (float(x) - LEFT) / LENGTH
                found.append((start, start + float(width) / LENGTH))
    return found
