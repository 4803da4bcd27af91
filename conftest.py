"""Every house's tests share one harness."""

pytest_plugins = ["tests.harness"]
