"""The browser of the lab's own tests."""

from tests.browser.conftest import _a_timeout_is_raised_again, browser  # noqa: F401
