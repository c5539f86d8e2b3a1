"""Where pytest meets the package: each hook hands over to the module that knows."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any, TextIO

import pytest

from pytest_harbor import (
    collection,
    durations,
    fixtures,
    guard,
    hookspecs,
    items,
    job,
    options,
    orders,
    scheduling,
    terminal,
)
from pytest_harbor.fixtures import harbor_agent as harbor_agent
from pytest_harbor.fixtures import harbor_compose as harbor_compose
from pytest_harbor.fixtures import harbor_episode as harbor_episode
from pytest_harbor.fixtures import harbor_gateway as harbor_gateway
from pytest_harbor.fixtures import harbor_recipe as harbor_recipe
from pytest_harbor.fixtures import harbor_task as harbor_task
from pytest_harbor.fixtures import harbor_user as harbor_user
from pytest_harbor.items import harbor_attempt as harbor_attempt
from pytest_harbor.reporting import Reporting
from pytest_harbor.until_step import take_step_arguments

_TERMINAL = pytest.StashKey[TextIO | None]()
_MARKERS = (
    "harbor(**metadata): on every task, what its task.toml says: -m \"harbor(difficulty='easy')\"",
    "harbor_task(path): the task that the harbor_* fixtures of this test work on",
)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Announce the hooks that this plugin calls."""
    pluginmanager.add_hookspecs(hookspecs)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register what may be set."""
    options.add_options(parser)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Generator[None]:
    """Keep pytest from importing a task's conftest.py at the start."""
    scheduling.note_dist_mode(early_config)
    guard.guard_imports(early_config)
    early_config.stash[_TERMINAL] = terminal.keep_terminal(early_config)
    with guard.trusted_conftests(early_config):
        return (yield)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Refuse what cannot be meant or must not be run, and get ready."""
    options.check_settings(config)
    take_step_arguments(config)
    guard.refuse_task_code(config)
    guard.spare_workers(config)
    durations.keep_durations(config)
    config.pluginmanager.register(items.TaskCounter(config), "harbor-task-counter")
    for line in _MARKERS:
        config.addinivalue_line("markers", line)
    this = config.stash[job.JOB] = job.open_job(config)
    config.add_cleanup(this.close)
    job.stop_on_sigterm(config)
    if this.is_controller:
        config.pluginmanager.register(
            Reporting(config, this, config.stash.get(_TERMINAL, None)), "harbor-reporting"
        )


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> int | None:
    """Do something else than run tests, if asked to."""
    return orders.clean(config)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Show recipes instead of running tests, if asked to."""
    return orders.show_recipe(session)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker which run it belongs to."""
    job.tell_worker(node.config, node)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Make thousands of items without looking for garbage among them."""
    with collection.undisturbed():
        return (yield)


@pytest.hookimpl(tryfirst=True)
def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Collect tasks that are called ``build``; skip links that lead into a task."""
    return collection.settle_ignored(collection_path, config)


@pytest.hookimpl(tryfirst=True)
def pytest_collect_directory(path: Path, parent: pytest.Collector) -> collection.TaskDir | None:
    """Take a task folder out of pytest's hands."""
    return collection.make_collector(path, parent)


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make an item of each attempt."""
    collection.repeat_attempts(metafunc)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the items of a task together."""
    collection.order(items)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> bool | None:
    """Leave an episode alone that is reported as crashed."""
    return fixtures.has_crashed(item) or None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Put the record of a step or an episode on its report."""
    fixtures.note_end(item, call)
    report = yield
    items.add_records(item, report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable(
    report: object,
) -> Generator[None, dict[str, Any] | None, dict[str, Any] | None]:
    """Keep a report from stopping the run on its way to another process."""
    return items.make_serializable(report, (yield))


@pytest.hookimpl(tryfirst=True)
def pytest_report_teststatus(report: object) -> tuple[str, str, str] | None:
    """Show an infrastructure fault as an error."""
    return items.status(report)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object | None:
    """Hand out the longest tasks first."""
    return scheduling.make_scheduler(config, log)
