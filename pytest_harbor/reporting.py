"""What the controller makes of finished episodes: lines, the final table, junit, HTML, job files.

Workers only run episodes; everything here reads their folders.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import pytest

from pytest_harbor.durations import is_task_id
from pytest_harbor.job import Job
from pytest_harbor.options import given
from pytest_harbor.scheduling import give_up
from pytest_harbor.terminal import LiveView, task_line, write_line, write_summary

if TYPE_CHECKING:
    from pytest_harbor.episode.result import Verdict
    from pytest_harbor.report.numbers import Numbers


class Reporting:
    """Plugin of the controller process (also of a run without workers)."""

    def __init__(self, config: pytest.Config, job: Job, terminal: TextIO | None = None) -> None:
        self._config = config
        self._job = job
        self._shown: dict[str, Verdict] = {}
        self._places: list[str] = []
        self._live: LiveView | None = None
        self._terminal = terminal
        self._numbers: Numbers | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        """Begin to watch the episodes."""
        reporter = self._reporter()
        wanted = reporter is not None and self._config.get_verbosity() >= 0
        if wanted and not session.config.option.collectonly and reporter is not None:
            # with workers nothing runs, and nothing is captured, in this process
            alone = not self._config.pluginmanager.hasplugin("dsession")
            self._live = LiveView(self._job.folder, reporter, self._terminal if alone else None)
            self._live.start()

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note which episode belongs to which test, and say that it is over."""
        name = self._episode_of(report)
        if name is None:
            return
        self._job.episodes[report.nodeid] = name
        shown = _shown(report)
        if shown is not None:
            self._shown[report.nodeid] = shown
        reporter = self._reporter()
        ended = report.when == "call" or (report.when == "setup" and not report.passed)
        if ended and reporter is not None and self._config.get_verbosity() >= 0:
            if self._live is not None:
                self._live.look()
            line = task_line(self._job, name)
            if line is not None:
                write_line(reporter, line, **_colour(shown))

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(
        self, crashitem: str, report: pytest.TestReport, sched: object
    ) -> None:
        """Take a worker's death in the middle of an episode for what it is: no low score."""
        if not is_task_id(crashitem):
            return
        give_up(sched, crashitem)
        name = self._episode_of(report)
        report.when = "call"
        vars(report)["harbor_episode"] = {"folder": name, "verdict": "error"}
        if self._live is not None and name is not None:
            self._live.drop(name)

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_sessionfinish(self) -> Generator[None]:
        """Write the reports, after pytest wrote its own and before the final table is shown."""
        try:
            return (yield)
        finally:
            if self._live is not None:
                self._live.stop()
            self._job.adopt_stopped()
            if self._job.episodes:
                for write in (self._write_job, self._write_html, self._rewrite_junit):
                    self._carefully(write)

    @pytest.hookimpl
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Show the final table and where everything lies."""
        write_summary(terminalreporter, self._job, self._places, self._numbers)

    def _reporter(self) -> pytest.TerminalReporter | None:
        found: Any = self._config.pluginmanager.get_plugin("terminalreporter")
        return found if isinstance(found, pytest.TerminalReporter) else None

    def _episode_of(self, report: pytest.TestReport) -> str | None:
        """The folder name of the episode behind a report; also for a worker that crashed."""
        if hasattr(report, "harbor_step"):
            return None
        facts: dict[str, Any] | None = getattr(report, "harbor_episode", None)
        if facts is not None and facts.get("folder"):
            return str(facts["folder"])
        path, _, rest = report.nodeid.partition("::")
        if facts is None and rest and path.endswith("task.toml"):
            from pytest_harbor.episode.folder import episode_name

            name = episode_name(Path(path).parent.name, report.nodeid)
            return name if (self._job.folder / name).is_dir() else None
        return None

    def _carefully(self, write: Callable[[], None]) -> None:
        """A report that cannot be written is a line at the end; the results on disk are whole."""
        try:
            write()
        except Exception as error:
            name = write.__name__.removeprefix("_")
            self._places.append(f"WARNING: {name} failed: {type(error).__name__}: {error}")

    def _write_job(self) -> None:
        from pytest_harbor.report.job import write_job

        results = self._job.results().values()
        self._numbers = write_job(self._job.folder, results, started_at=self._job.started_at)
        self._places.append(f"run folder: {self._shorten(self._job.folder)}")

    def _write_html(self) -> None:
        from pytest_harbor.report.html import write_report

        asked = given(self._config, "html")
        path = Path(asked.value) if asked else self._job.folder / "report.html"
        results = self._job.results().values()
        write_report(
            self._job.folder,
            path,
            results,
            private_verifier=self._keeps_verifier_private,
            found=self._numbers,
        )
        self._places.append(f"HTML report: {self._shorten(path)}")

    def _rewrite_junit(self) -> None:
        xml = self._config.getoption("xmlpath", None)
        if not xml:
            return
        from pytest_harbor.report.junit import rewrite

        path = Path(os.path.expandvars(xml)).expanduser().absolute()
        trouble = rewrite(
            path,
            self._job.folder,
            self._job.episodes,
            root=self._config.rootpath,
            prefix=self._config.getoption("junitprefix", None) or "",
            shown=self._shown,
            private_verifier=self._keeps_verifier_private,
        )
        if trouble:
            raise ValueError(trouble)
        self._places.append(f"junit: {self._shorten(path)}")

    @property
    def _keeps_verifier_private(self) -> bool:
        """Whether hidden tests must not be read from a report (B118)."""
        asked = given(self._config, "private-verifier")
        return bool(asked and asked.value)

    def _shorten(self, path: Path) -> str:
        here = self._config.invocation_params.dir
        return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def _shown(report: pytest.TestReport) -> Verdict | None:
    """How pytest shows an item by one of its reports; None for one that says nothing new."""
    if report.failed:
        episode: dict[str, Any] = getattr(report, "harbor_episode", {})
        in_call = report.when == "call" and episode.get("verdict") != "error"
        return "failed" if in_call else "error"
    if report.when == "call" or report.skipped:
        if report.skipped:
            return "xfailed" if hasattr(report, "wasxfail") else "skipped"
        return "passed"
    return None


def _colour(shown: Verdict | None) -> dict[str, bool]:
    return {"green": True} if shown == "passed" else {"red": True}
