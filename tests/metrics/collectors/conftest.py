from __future__ import annotations

import pytest

from tests.metrics.collectors.scraping import Scraped


@pytest.fixture
def scraped() -> Scraped:
    return Scraped()
