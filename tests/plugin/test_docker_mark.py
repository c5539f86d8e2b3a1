"""A test that needs the engine is skipped without one, and fails where skipping is forbidden."""

from __future__ import annotations

from pathlib import Path

import pytest

CONFTEST = Path(__file__).parents[1] / "conftest.py"

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def without_engine(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{pytester.path}/nobody.sock")
    monkeypatch.delenv("PYTEST_HARBOR_REQUIRE_DOCKER", raising=False)
    pytester.makeini("[pytest]\nmarkers = docker: needs a running Docker engine\n")
    pytester.makeconftest(CONFTEST.read_text())
    pytester.makepyfile(
        test_plain="def test_plain(): pass",
        test_marked="import pytest\n@pytest.mark.docker\ndef test_marked(): pass",
    )
    in_folder = pytester.mkdir("docker") / "test_in_folder.py"
    in_folder.write_text("def test_in_folder(): pass\n")
    return pytester


def test_skipped_with_the_reason(without_engine: pytest.Pytester) -> None:
    result = without_engine.runpytest_subprocess("-rs")
    result.assert_outcomes(passed=1, skipped=2)
    result.stdout.fnmatch_lines(["*SKIPPED*No Docker engine answers at*nobody.sock*"])


def test_fails_where_the_engine_is_required(
    without_engine: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_HARBOR_REQUIRE_DOCKER", "1")
    result = without_engine.runpytest_subprocess()
    result.assert_outcomes(passed=1, errors=2)
    result.stdout.fnmatch_lines(["*This run must not skip tests marked docker.*"])
    assert result.ret == pytest.ExitCode.TESTS_FAILED


def test_nobody_is_asked_when_no_test_needs_it(
    without_engine: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_HARBOR_REQUIRE_DOCKER", "1")
    without_engine.runpytest_subprocess("-m", "not docker").assert_outcomes(passed=1, deselected=2)
