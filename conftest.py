"""Every house's tests share one harness."""

pytest_plugins = ["pytester", "tests.harness"]
