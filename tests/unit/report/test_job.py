"""The job folder in Harbor's shape: its models and its viewer read it."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from harbor_beside import ask_harbor, needs_harbor
from sample_job import START, episode, fault, interval, step, unreached, write

from pytest_harbor.episode.outcome import Outcome
from pytest_harbor.episode.result import AgentIdentity, EpisodeResult, TurnRecord
from pytest_harbor.report.job import write_job

TURN = TurnRecord(ran=interval(1), ended="exited", input_tokens=10, output_tokens=5, cost_usd=0.25)
RESULTS = [
    episode("d/one/task.toml::one", steps=[step("task", implicit=True, turn=TURN)]),
    episode(
        "d/two/task.toml::two",
        steps=[step("a", 0, 0.5, turn=TURN), unreached("b", 1)],
        outcome=Outcome.GATE_STOPPED,
        reward=0.25,
        reward_as_harbor=0.5,
    ),
    episode(
        "d/three/task.toml::three",
        outcome=Outcome.START_FAILED,
        reward=None,
        fault=fault(Outcome.START_FAILED, "start"),
    ),
    episode(
        "d/user/task.toml::user",
        outcome=Outcome.USER_DEGRADED,
        reward=None,
        reward_as_harbor=0.0,
        rewards={"reward": 0.0},
        fault=fault(Outcome.USER_DEGRADED, "agent"),
    ),
    episode(
        "e/four/task.toml::four",
        outcome=Outcome.INTERRUPTED,
        reward=None,
        fault=fault(Outcome.INTERRUPTED, "agent"),
        agent=AgentIdentity(name="nop"),
    ),
]


@pytest.fixture
def job(tmp_path: Path) -> Path:
    folder = tmp_path / "jobs" / "2026-11-03__14-02-07"
    for each in RESULTS:
        write(folder, each)
    write_job(folder, RESULTS, started_at=START, finished_at=START + timedelta(seconds=90), total=6)
    return folder


def read(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(path.read_text())
    return document


def test_counts_and_sums(job: Path) -> None:
    stats = read(job / "result.json")["stats"]
    assert stats["n_completed_trials"] == 5
    assert stats["n_errored_trials"] == 3
    assert stats["n_cancelled_trials"] == 1
    assert stats["n_pending_trials"] == 1
    assert stats["n_input_tokens"] == 20
    assert stats["cost_usd"] == 0.5
    assert stats["n_cache_tokens"] is None


def test_statistics_of_each_agent_and_dataset(job: Path) -> None:
    evals = read(job / "result.json")["stats"]["evals"]
    assert set(evals) == {"oracle__large-1__d", "nop__e"}
    ours = evals["oracle__large-1__d"]
    assert ours["n_trials"] == 2
    assert ours["metrics"] == [{"mean": 0.75}]
    assert ours["exception_stats"] == {
        "EnvironmentStartTimeoutError": [RESULTS[2].episode],
        "UserDegradedError": [RESULTS[3].episode],
    }
    assert evals["nop__e"]["metrics"] == []


def test_several_reward_keys_have_a_mean_each() -> None:
    results = [
        episode("d/a/task.toml::a", rewards={"reward": 1.0, "style": 0.5}),
        episode("d/b/task.toml::b", rewards={"reward": 0.0}, reward_as_harbor=0.0),
    ]
    from pytest_harbor.report.job import job_result

    [found] = job_result("j", results, START, START)["stats"]["evals"].values()
    assert found["metrics"] == [{"reward": 0.5, "style": 0.25}]


def test_a_run_without_episodes_is_a_job_too(tmp_path: Path) -> None:
    write_job(tmp_path / "job", [], started_at=START)
    document = read(tmp_path / "job" / "result.json")
    assert document["stats"]["evals"] == {}
    assert document["finished_at"] >= document["started_at"][:4]
    assert sorted(each.name for each in (tmp_path / "job").iterdir()) == [
        "config.json",
        "result.json",
        "summary.json",
    ]


@needs_harbor
def test_harbor_finds_the_same_statistics(job: Path) -> None:
    answer = ask_harbor(
        "from pathlib import Path\n"
        "from harbor.models.job.config import JobConfig\n"
        "from harbor.models.job.result import JobResult, JobStats\n"
        "from harbor.models.trial.result import TrialResult\n"
        "job = Path(given)\n"
        "ours = JobResult.model_validate_json((job / 'result.json').read_text())\n"
        "JobConfig.model_validate_json((job / 'config.json').read_text())\n"
        "trials = [TrialResult.model_validate_json(p.read_text())\n"
        "          for p in sorted(job.glob('*/result.json'))]\n"
        "theirs = JobStats.from_trial_results(trials, n_total_trials=6)\n"
        "def plain(stats):\n"
        "    data = stats.model_dump(mode='json')\n"
        "    for each in data['evals'].values():\n"
        "        each.pop('metrics')\n"
        "        for values in each['reward_stats'].values():\n"
        "            values.update((k, sorted(v)) for k, v in values.items())\n"
        "    return data\n"
        "answer = [plain(ours.stats), plain(theirs)]",
        str(job),
    )
    assert answer[0] == answer[1]


@needs_harbor
def test_harbors_viewer_opens_the_job(job: Path) -> None:
    answer = ask_harbor(
        "from pathlib import Path\n"
        "from starlette.testclient import TestClient\n"
        "from harbor.viewer import create_app\n"
        "with TestClient(create_app(Path(given), mode='jobs')) as client:\n"
        "    jobs = client.get('/api/jobs').json()['items']\n"
        "    name = jobs[0]['name']\n"
        "    trials = client.get(f'/api/jobs/{name}/trials?page_size=100').json()['items']\n"
        "    pages = [client.get(f\"/api/jobs/{name}/trials/{t['name']}\").status_code\n"
        "             for t in trials]\n"
        "answer = {'jobs': jobs, 'trials': trials, 'pages': pages}",
        str(job.parent),
    )
    assert [each["name"] for each in answer["jobs"]] == [job.name]
    assert {each["name"] for each in answer["trials"]} == {each.episode for each in RESULTS}
    assert answer["pages"] == [200] * 5


def test_episodes_without_an_agent_are_listed_too() -> None:
    result: EpisodeResult = episode(agent=None)
    from pytest_harbor.report.job import job_result

    assert list(job_result("j", [result], START)["stats"]["evals"]) == ["unknown__swe"]


@needs_harbor
@pytest.mark.parametrize("odd", ["", "fraction", "error"])
def test_harbor_finds_the_same_pass_at_k(tmp_path: Path, odd: str) -> None:
    ends = {"a": "ppfffpfp", "b": "fffff", "c": "pfpfpf"}
    results = []
    for task, letters in ends.items():
        for number, letter in enumerate(letters, 1):
            outcome, reward = (Outcome.PASSED, 1.0) if letter == "p" else (Outcome.FAILED, 0.0)
            key = f"d/{task}/task.toml::{task}[attempt{number}]"
            results.append(episode(key, outcome=outcome, reward=reward, attempt=number))
    extra = {"fraction": (Outcome.FAILED, 0.5), "error": (Outcome.START_FAILED, None)}.get(odd)
    if extra is not None:
        broken = fault(extra[0]) if extra[1] is None else None
        key = "d/a/task.toml::a[attempt9]"
        results.append(episode(key, (), *extra, attempt=9, fault=broken))
    for each in results:
        write(tmp_path, each)
    write_job(tmp_path, results, started_at=START)
    theirs = ask_harbor(
        "from pathlib import Path\n"
        "from harbor.models.trial.result import TrialResult\n"
        "from harbor.utils.pass_at_k import compute_pass_at_k_by_evals\n"
        "trials = [TrialResult.model_validate_json(p.read_text())\n"
        "          for p in sorted(Path(given).glob('*/result.json'))]\n"
        "answer = compute_pass_at_k_by_evals(trials)",
        str(tmp_path),
    )
    evals = read(tmp_path / "result.json")["stats"]["evals"]
    ours = {key: each["pass_at_k"] for key, each in evals.items() if each["pass_at_k"]}
    assert bool(ours) is (odd != "fraction")
    assert ours == {
        key: pytest.approx({str(k): value for k, value in each.items()})
        for key, each in theirs.items()
    }
