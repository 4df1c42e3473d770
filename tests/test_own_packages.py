"""Projects with own packages `broker`, `client`, `pipeline` and an own module `protocol`, beside the installed wheel.

Their tests import these and use our fixtures. They wait until a topic is compacted, which another process does, and
read a topic by Spark, whose workers are other processes too. Each project has a virtual environment with our wheel. It
borrows the packages that the wheel needs from the environment that runs these tests, without its editable installs.
"""

from __future__ import annotations

import os
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from tests.pipeline.quick_start import PROPERTIES
from tests.wheels import build, pip, run_in_group

pytestmark = pytest.mark.process

PACKAGES = {
    "broker/__init__.py": "",
    "broker/broker.py": "class Broker:\n    pass\n",
    "client/__init__.py": "",
    "client/admin.py": "class Admin:\n    pass\n",
    "pipeline/__init__.py": "",
    "protocol.py": "",
}
"""Names that are ours as well, one level down too."""

PYPROJECT = """
[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "shop"
version = "1"

[tool.setuptools]
py-modules = ["protocol"]
packages = ["broker", "client", "pipeline"]
package-dir = {"" = "src"}
"""

CONFTEST = """
import pytest

pytest_plugins = ["odradek.broker.testing.plugin"]


@pytest.fixture(scope="session")
def kafka_properties():
    return {"log.cleaner.backoff.ms": "1"}
"""

TEST_SHOP = """
import asyncio

import broker.broker
import client.admin
import pipeline
import protocol

from odradek import Admin, Consumer, Producer
from odradek.client import NewTopic, TopicPartition

OWN = [broker, broker.broker, client, client.admin, pipeline, protocol]
COMPACTED = {
    "cleanup.policy": "compact",
    "segment.bytes": "150",
    "min.cleanable.dirty.ratio": "0.1",
    "max.compaction.lag.ms": "3600000",
}
OLD = 1_700_000_000_000  # overdue, so that the worker waits for no idle processor


async def fill(bootstrap, name, timestamp=None, configs={}):
    async with Admin(bootstrap) as admin:
        (await admin.create_topics([NewTopic(name, 1, configs=configs)])).values_or_raise()
    async with Producer(bootstrap) as producer:
        for number in range(8):
            await producer.send_and_wait(name, b"%d" % number, b"key", timestamp=timestamp)


async def first_offset(bootstrap, name):
    async with Consumer(bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(name, 0)])
        while not (records := await consumer.poll()):
            pass
        return records[0].offset


def test_the_packages_are_those_of_the_project():
    assert [module.OWNER for module in OWN] == ["the shop"] * len(OWN)


def test_records_come_back(kafka_broker):
    asyncio.run(fill(kafka_broker.bootstrap, "orders"))
    assert asyncio.run(first_offset(kafka_broker.bootstrap, "orders")) == 0


def test_a_topic_is_compacted(kafka_broker):
    asyncio.run(fill(kafka_broker.bootstrap, "prices", OLD, COMPACTED))
    while asyncio.run(first_offset(kafka_broker.bootstrap, "prices")) == 0:
        pass
"""

TEST_SPARK = """
import asyncio

from test_shop import fill

from odradek.pipeline import session


def test_a_topic_is_a_table(kafka_broker):
    def owners(batches):
        import broker.broker
        import client.admin
        import pipeline
        import protocol
        import pyarrow

        own = [broker, broker.broker, client, client.admin, pipeline, protocol]
        for batch in batches:
            yield pyarrow.RecordBatch.from_pydict({"owners": [",".join(module.OWNER for module in own)] * len(batch)})

    asyncio.run(fill(kafka_broker.bootstrap, "orders"))
    spark = session("shop", master="local[1]", config=PROPERTIES)
    try:
        options = {"kafka.bootstrap.servers": kafka_broker.bootstrap, "subscribe": "orders"}
        table = spark.read.format("broker").options(**options).load()
        assert [bytes(row.value) for row in table.collect()] == [b"%d" % number for number in range(8)]
        seen = table.mapInArrow(owners, "owners string").collect()
        assert [row.owners for row in seen] == [",".join(["the shop"] * 6)] * 8
    finally:
        spark.stop()
"""


def environment() -> dict[str, str]:
    """That of this process, without what a Spark session of an earlier test has set for its own workers."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTHONPATH", "PYSPARK_"))}


class Project:
    """A project in a directory, and the virtual environment in which it runs with our wheel."""

    def __init__(self, directory: Path, wheel: zipfile.ZipFile) -> None:
        self.directory = directory / "shop"
        self.directory.mkdir()
        self._environment = directory / "environment"
        venv.create(self._environment, symlinks=True)
        site_packages = next(self._environment.glob("lib/python*/site-packages"))
        (site_packages / "borrowed.pth").write_text(
            f"{sysconfig.get_path('purelib')}\n{sysconfig.get_path('platlib')}\n"
        )
        self.pip("install", "--no-deps", "--no-index", "--ignore-installed", str(wheel.filename))

    @property
    def python(self) -> str:
        return str(self._environment / "bin" / "python")

    def pip(self, *arguments: str) -> str:
        return pip(*arguments, python=self.python, environment={})

    def write(self, files: dict[str, str], below: str = ".") -> None:
        for name, text in files.items():
            path = self.directory / below / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def write_tests(self, below: str = ".") -> None:
        self.write({"conftest.py": CONFTEST})
        test_spark = TEST_SPARK.replace("PROPERTIES", repr(PROPERTIES))
        self.write({"test_shop.py": TEST_SHOP, "test_spark.py": test_spark}, below)

    def run_pytest(self, name: str) -> str:
        command = [self.python, "-m", "pytest", "-p", "no:cacheprovider", "--timeout=200", "-k", name]
        done = run_in_group(command, timeout=240, cwd=self.directory, env=environment())
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        return done.stdout.splitlines()[-1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    return build(tmp_path_factory, ODRADEK_COMPILE="0")


@pytest.fixture(scope="module", params=["flat", "editable", "installed"])
def project(
    request: pytest.FixtureRequest, wheel: zipfile.ZipFile, tmp_path_factory: pytest.TempPathFactory
) -> Project:
    project = Project(tmp_path_factory.mktemp(request.param), wheel)
    packages = {name: f"OWNER = 'the shop'\n{text}" for name, text in PACKAGES.items()}
    if request.param == "flat":
        project.write(packages)
        project.write_tests()
        return project
    project.write({"pyproject.toml": PYPROJECT})
    project.write(packages, "src")
    if request.param == "editable":
        project.pip("install", "--no-deps", "--editable", str(project.directory))
    else:
        project.pip("install", "--no-deps", str(project.directory))
    project.write_tests("tests")
    return project


def test_a_project_with_packages_of_these_names_can_be_tested(project: Project) -> None:
    assert " 3 passed" in project.run_pytest("test_shop")


def test_pip_finds_nothing_broken(project: Project) -> None:
    assert project.pip("check") == "No broken requirements found.\n"


@pytest.mark.spark
@pytest.mark.timeout(300)
@pytest.mark.parametrize("project", ["flat"], indirect=True)  # installed ones are found as in the driver
def test_the_workers_of_spark_find_both(project: Project) -> None:
    assert " 1 passed" in project.run_pytest("test_spark")


def test_a_wheel_has_one_name(wheel: zipfile.ZipFile) -> None:
    assert {name.partition("/")[0] for name in wheel.namelist() if ".dist-info/" not in name} == {"odradek"}
