"""The earlier name of the plugin for pytest, for `pytest_plugins = ["odradek.broker.testing.plugin"]`.

The fixtures are in `odradek.testing.plugin`, which pytest finds without a conftest.py once Odradek is installed.
"""

pytest_plugins = ["odradek.testing.plugin"]
