"""What tests of a live pipeline share."""

from tests.measure.leftovers import nothing_stays  # noqa: F401
