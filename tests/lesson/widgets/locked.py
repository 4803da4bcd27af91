"""What is locked, as the file of predictions has it."""

from typing import Any

from starvelab.lesson.widgets.store import PredictionStore


def predictions() -> dict[str, dict[str, Any]]:
    """Return the fields of each prediction by its key."""
    return {key: one.to_json() for key, one in PredictionStore().read().predictions.items()}
