"""The HTML report: self-contained, complete, and deaf to whatever its content says."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

import pytest
from page_tools import Element, episodes, everything, packed, read_page
from sample_job import episode, interval, step, unreached, write
from sample_run import HOSTILE, RECIPE, build

from pytest_harbor.episode.outcome import Outcome
from pytest_harbor.episode.result import AgentIdentity, GradeRecord, GrantRecord, TurnRecord
from pytest_harbor.redaction import Redactor
from pytest_harbor.report.html import write_report
from pytest_harbor.report.numbers import numbers


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("jobs") / "2026-11-03__14-02-07"
    results = build(folder)
    write_report(folder, folder / "report.html", results)
    return folder


@pytest.fixture(scope="module")
def root(job: Path) -> Element:
    return read_page(job / "report.html")


def find(root: Element, task: str) -> Element:
    return next(each for each in episodes(root) if each.attributes["id"].startswith(task))


# --- self-contained and safe


def test_nothing_is_loaded_from_anywhere(job: Path, root: Element) -> None:
    for element in root.all("*"):
        assert "src" not in element.attributes
        assert not any(name.startswith("on") for name in element.attributes)
        assert "style" not in element.attributes, "the content policy would refuse it"
        href = element.attributes.get("href")
        assert href is None or href.startswith(("./", "#"))
        assert element.tag not in ("link", "img", "iframe", "object", "base", "form")
    style = (job / "report.html").read_text().partition("</style>")[0]
    assert "url(" not in style
    assert "@import" not in style


def test_the_policy_allows_our_script_and_sheet_and_nothing_else(root: Element) -> None:
    [meta] = [e for e in root.all("meta") if "http-equiv" in e.attributes]
    policy = dict(
        part.strip().split(" ", 1) for part in meta.attributes["content"].split(";") if part.strip()
    )
    assert policy["default-src"] == "'none'"
    [script] = [e for e in root.all("script") if "type" not in e.attributes]
    [style] = root.all("style")
    for name, element in (("script-src", script), ("style-src", style)):
        [text] = element.children
        assert isinstance(text, str)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert policy[name] == f"'sha256-{digest}'"


def test_the_script_builds_text_and_never_markup() -> None:
    from pytest_harbor.report import html

    script = (Path(html.__file__).with_name("templates") / "report.js").read_text()
    for forbidden in ("innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval("):
        assert forbidden not in script


def test_hostile_names_and_logs_are_text(job: Path, root: Element) -> None:
    assert HOSTILE not in (job / "report.html").read_text()
    hostile = next(e for e in episodes(root) if "HACKED" in e.attributes["data-search"])
    [task] = hostile.all("span", class_="task")
    assert task.text == f"x{HOSTILE}"
    assert HOSTILE in hostile.all("p", class_="reason")[0].text
    assert f"/tmp/{HOSTILE}" in json.dumps(packed(hostile)).replace('\\"', '"')


def test_control_characters_are_nowhere(job: Path) -> None:
    text = everything(job / "report.html")
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", text)
    assert "\\u001b" not in text
    assert "#x00 nul" in text


def test_a_browser_shows_it_and_runs_nothing_of_the_content(job: Path, tmp_path: Path) -> None:
    chromium = Path("/usr/bin/chromium")
    if not chromium.exists():
        pytest.skip("no chromium here")
    name = next(each.name for each in job.iterdir() if each.name.startswith("feature_csv"))
    flags = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-sync"
    done = subprocess.run(
        [
            chromium,
            *flags.split(),
            *("--disable-background-networking", "--disable-component-update"),
            f"--user-data-dir={tmp_path}",
            "--virtual-time-budget=10000",
            "--dump-dom",
            f"file://{job}/report.html#{name}",
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    dom = done.stdout
    assert "<title>4 of 10 resolved" in dom
    opened = dom[dom.index(f'id="{name}"') :].partition('<details class="episode')[0]
    assert "test_missing_trailer_warns" in opened, "the failed step's output lies open"
    assert "<dt>Verifier budget</dt>" in opened
    assert "15 episodes" in dom


# --- what stands on the page


def test_totals_name_their_denominators(root: Element) -> None:
    [figures] = root.all("section", class_="figures")
    assert "Resolved 4 of 10" in figures.text
    assert "over the 10 graded 0.293 over all 15, errors as 0" in figures.text
    assert "Not graded 5 of 15" in figures.text
    assert "1 no reward" in figures.text
    assert "known of 12 of 15" in figures.text


def test_every_outcome_is_told_apart(root: Element) -> None:
    [legend] = root.all("ul", class_="legend")
    for outcome in ("passed 4", "agent timeout 1", "gate stopped 1", "user degraded 1"):
        assert outcome in legend.text


def test_a_row_per_episode(root: Element) -> None:
    assert len(episodes(root)) == 15
    row = find(root, "feature_csv").all("summary")[0]
    assert row.text.startswith("✗ feature_csv_import gate stopped")
    assert "0.0 Harbor 0.3" in row.text
    assert "10 min 08 s $0.33" in row.text
    assert row.all("svg")[0].attributes["aria-label"].startswith("2 of 5 steps: passed, failed,")


def test_rewards_alike_are_not_said_twice(root: Element) -> None:
    assert "Harbor" not in find(root, "bugfix_inq").all("summary")[0].text


def test_steps_with_verdict_reason_and_remarks(root: Element) -> None:
    steps = find(root, "perf_index").all("details", class_="step")
    assert [each.all("span", class_="name")[0].text for each in steps][:2] == [
        "01_plan",
        "02_implement",
    ]
    assert "agent timeout" in steps[1].text
    assert "ran out of time after 600.0 s" in steps[1].text
    assert "open" in steps[4].attributes
    assert "open" not in steps[0].attributes


def test_a_simple_task_has_no_steps_to_open(root: Element) -> None:
    hello = find(root, "hello_world")
    assert not hello.all("details", class_="step")
    assert hello.all("div", class_="only")


def facts(element: Element, part: int) -> dict[str, object]:
    details = packed(element)[-1]
    return {each["label"]: each["items"] or each["text"] for each in details[part]["facts"]}


def test_facts_of_a_step(root: Element) -> None:
    known = facts(find(root, "feature_csv"), 1)
    assert known["Turn"] == "exited with 0 after 7 min 34 s"
    assert known["Gate"] == "min_reward ≥ 0.5, got 0.3"
    assert known["Rewards"] == ["reward = 0.3", "tests = 0.6", "style = 0.0"]
    assert known["MCP user-server"] == "required, answered; tools: ask_user"
    assert str(known["Agent budget"]).startswith("600 s (steps.agent.timeout_sec)")
    killed = facts(find(root, "perf_index"), 1)["Killed before grading"]
    assert killed == ["node server.js --watch", "sleep 3600"]


def test_facts_of_an_episode(root: Element) -> None:
    known = facts(find(root, "feature_csv"), -1)
    assert known["Run it again"] == (
        "pytest datasets/swe_interact/feature_csv_import/task.toml::feature_csv_import"
    )
    assert known["Agent"] == "claude-code 2.1.4, anthropic/claude-sonnet-4-6"
    assert known["Reward"] == "0.0; by Harbor's rules 0.3"
    assert len(known["Images"]) == 2  # type: ignore[arg-type]


def test_a_hostile_node_id_can_be_pasted(root: Element) -> None:
    hostile = next(e for e in episodes(root) if "HACKED" in e.attributes["data-search"])
    command = facts(hostile, -1)["Run it again"]
    assert isinstance(command, str)
    done = subprocess.run(
        ["sh", "-c", command.replace("pytest ", "printf %s ", 1)], capture_output=True, check=True
    )
    assert done.stdout.decode().endswith(HOSTILE)


def test_the_recipe_in_force_with_its_sources(root: Element) -> None:
    [recipe] = root.all("details", class_="recipe")
    for each in RECIPE:
        assert each.key in recipe.text
        assert each.source in recipe.text


def test_a_recipe_key_that_differs_says_so(tmp_path: Path) -> None:
    from pytest_harbor.report.facts import settings

    other = RECIPE[0].model_copy(update={"value": "codex"})
    [found] = settings([episode(recipe=RECIPE[:1]), episode(recipe=(other,))])
    assert found.value == "differs (2 values)"


def test_groups_of_agent_model_and_dataset(root: Element) -> None:
    [section] = root.all("section", class_="groups")
    assert "codex openai/gpt-5.5 swe_interact 1 of 3" in section.text


# --- logs


def test_links_lead_to_the_files(job: Path, root: Element) -> None:
    links = [
        log["link"] for each in episodes(root) for part in packed(each)[-1] for log in part["logs"]
    ]
    assert len(links) > 100
    for link in links:
        assert link.startswith("./")
        assert (job / unquote(link)).is_file()


def test_a_page_elsewhere_links_to_the_same_files(job: Path, tmp_path: Path) -> None:
    page = tmp_path / "deep" / "er" / "r.html"
    write_report(job, page, build(job))
    [link] = find(read_page(page), "hello").all("p", class_="files")[0].all("a")
    assert (page.parent / unquote(link.attributes["href"])).resolve().parent == job.resolve()


def test_a_step_name_is_never_a_scheme_in_a_link(tmp_path: Path) -> None:
    name = "javascript:alert(1)//"
    log = f"steps/{name}/agent/a b#c?.log"
    turn = TurnRecord(ran=interval(1), ended="exited", log=log)
    result = episode(steps=[step(name, turn=turn)])
    write(tmp_path, result, {log: "text"})
    write_report(tmp_path, tmp_path / "r.html", [result])
    [[logs, _], *_rest] = [
        [p["logs"] for p in packed(e)[-1]] for e in episodes(read_page(tmp_path / "r.html"))
    ]
    assert logs[0]["link"].startswith(f"./{result.episode}/steps/javascript%3Aalert%281%29/")
    assert "#" not in logs[0]["link"]


def test_transcripts_and_outputs_lie_in_the_page(root: Element) -> None:
    data = packed(find(root, "feature_csv"))
    chats = [each for each in data if isinstance(each, dict) and "messages" in each]
    texts = [each["text"] for each in data if isinstance(each, dict) and "text" in each]
    assert len(chats) == 2
    assert any("test_missing_trailer_warns" in text for text in texts)
    asked = [c for m in chats[1]["messages"] for c in m.get("calls", []) if c["talk"]]
    assert len(asked) == 2
    assert asked[0]["results"][0].startswith("Keep the old layout.")


def test_the_failed_steps_output_opens_by_itself(root: Element) -> None:
    parts = packed(find(root, "feature_csv"))[-1]
    opened = [[log["title"] for log in part["logs"] if log["opened"]] for part in parts]
    assert opened == [[], ["Verifier output"], [], [], [], []]


def test_logs_beyond_the_budget_are_linked_and_failures_come_first(tmp_path: Path) -> None:
    def one(name: str, outcome: Outcome, reward: float):
        turn = TurnRecord(ran=interval(1), ended="exited", log="agent/a.log")
        key = f"d/{name}/task.toml::{name}"
        only = step("task", 0, reward, implicit=True, turn=turn)
        return episode(key, [only], outcome, reward)

    results = [one("a", Outcome.PASSED, 1.0), one("b", Outcome.FAILED, 0.0)]
    text = "".join(hashlib.sha256(str(n).encode()).hexdigest() for n in range(500))
    for each in results:
        write(tmp_path, each, {"agent/a.log": text})
    page = tmp_path / "r.html"
    write_report(tmp_path, page, results, log_bytes=30_000)
    here = [packed(each)[-1][0]["logs"][0]["here"] for each in episodes(read_page(page))]
    assert here == [False, True]
    write_report(tmp_path, page, results, log_bytes=0)
    here = [packed(each)[-1][0]["logs"][0]["here"] for each in episodes(read_page(page))]
    assert here == [False, False]
    write_report(tmp_path, page, results)
    here = [packed(each)[-1][0]["logs"][0]["here"] for each in episodes(read_page(page))]
    assert here == [True, True]


def test_a_trajectory_that_is_none_is_shown_as_text(tmp_path: Path) -> None:
    turn = TurnRecord(ran=interval(1), ended="exited", trajectory="agent/trajectory.json")
    result = episode(steps=[step("task", implicit=True, turn=turn)])
    write(tmp_path, result, {"agent/trajectory.json": "not json"})
    page = tmp_path / "r.html"
    write_report(tmp_path, page, [result])
    [log, details] = packed(read_page(page))
    assert log == {"text": "not json"}
    assert details[0]["logs"][0]["title"] == "Transcript"


def test_logs_that_are_gone_are_left_out(tmp_path: Path) -> None:
    turn = TurnRecord(ran=interval(1), ended="exited", trajectory="gone.json", log="gone.log")
    grade = GradeRecord(ran=interval(1), log="gone.txt")
    result = episode(steps=[step("task", implicit=True, turn=turn, grade=grade)])
    page = tmp_path / "r.html"
    write_report(tmp_path, page, [result])
    [details] = packed(read_page(page))
    assert details[0]["logs"] == []


# --- the file


def test_importing_the_reports_costs_no_template_engine() -> None:
    code = (
        "import sys\n"
        "from pytest_harbor.report import html, job, junit\n"
        "sys.exit(bool({'jinja2', 'pytest', 'docker', 'mcp'} & sys.modules.keys()))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_no_episodes_make_a_page_too(tmp_path: Path) -> None:
    write_report(tmp_path, tmp_path / "r.html", [])
    assert "nothing was graded" in read_page(tmp_path / "r.html").text


def test_the_same_results_make_the_same_page(job: Path, tmp_path: Path) -> None:
    results = build(job)
    write_report(job, tmp_path / "a.html", results)
    write_report(job, tmp_path / "b.html", reversed(results))
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_a_page_that_cannot_be_finished_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "r.html"
    page.write_text("old")
    monkeypatch.setattr("pytest_harbor.report.html.Viewer.episode", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_report(tmp_path, page, [episode()])
    assert page.read_text() == "old"
    assert list(tmp_path.iterdir()) == [page]


def test_steps_of_a_killed_run_show_what_they_were(tmp_path: Path) -> None:
    steps = [step("a", 0, verdict="skipped"), unreached("b", 1)]
    result = episode(steps=steps, outcome=Outcome.INTERRUPTED, reward=None)
    write_report(tmp_path, tmp_path / "r.html", [result])
    [row] = episodes(read_page(tmp_path / "r.html"))
    assert row.all("svg")[0].attributes["aria-label"].endswith("passed, not reached")


def test_secrets_in_logs_and_names_are_taken_out(tmp_path: Path) -> None:
    turn = TurnRecord(
        ran=interval(1), ended="error", message="key hunter22", log="a.log", trajectory="t.json"
    )
    agent = AgentIdentity(name="a", model="m-hunter22")
    result = episode(
        steps=[step("a", 0, 0.0, turn=turn, warnings=("hunter22",), verdict_reason="hunter22")],
        verdict_reason="hunter22",
        agent=agent,
    )
    chat = {"steps": [{"step_id": 1, "source": "agent", "message": "hunter22"}]}
    write(tmp_path, result, {"a.log": "hunter22", "t.json": json.dumps(chat)})
    page = tmp_path / "r.html"
    write_report(tmp_path, page, [result], redactor=Redactor(["hunter22"]))
    assert "hunter22" not in everything(page)
    assert everything(page).count("[redacted]") >= 6


# --- attempts, talk, shape


def table_of(element: Element) -> list[str]:
    return [row.text.replace("\N{EN DASH}", " to ") for row in element.all("tr")]


def test_attempts_have_a_table_where_there_are_several(root: Element, tmp_path: Path) -> None:
    assert root.all("section", class_="attempts") == []
    results = [
        episode(f"d/t/task.toml::t[attempt{n}]", (), outcome, reward, attempt=n)
        for n, (outcome, reward) in enumerate(
            [(Outcome.PASSED, 1.0), (Outcome.FAILED, 0.5), (Outcome.SANDBOX_DIED, None)], 1
        )
    ]
    results.append(episode("d/u/task.toml::u"))
    write_report(tmp_path, tmp_path / "r.html", results)
    page = read_page(tmp_path / "r.html")
    [section] = page.all("section", class_="attempts")
    assert table_of(section)[1:] == [
        "1 75 % 20 to 97 % 75 % 20 to 97 % 2",
        "2 100 % 21 to 100 % 0 % 0 to 79 % 1 1",
    ]
    assert "3 of 4 attempts graded" in section.text
    assert [each.text for each in section.all("h2")] == ["Attempts"]
    assert page.all("section", class_="alike") == []


def test_attempts_of_several_groups_say_whose(tmp_path: Path) -> None:
    results = [
        episode(f"d/t/task.toml::t[{name}-attempt{n}]", attempt=n, agent=AgentIdentity(name=name))
        for name in ("a", "b")
        for n in (1, 2)
    ]
    write_report(tmp_path, tmp_path / "r.html", results)
    sections = read_page(tmp_path / "r.html").all("section", class_="attempts")
    assert [each.all("h2")[0].text for each in sections] == [
        "Attempts: a on d",
        "Attempts: b on d",
    ]


def test_questions_to_the_user_step_by_step(root: Element, tmp_path: Path) -> None:
    [figure] = root.all("figure", class_="asked")
    assert table_of(figure)[1:] == [
        "01_plan 1 1 1 0 of 8",
        "02_implement 0 3 3 1 of 8",
        "03_handoff 0 0 0 7 of 7",
        "04_write_tests 0 0 0 7 of 7",
        "05_test_handoff 0 0 0 7 of 7",
        "all steps 1 4 4 0 of 8",
    ]
    write_report(tmp_path, tmp_path / "r.html", [episode()])
    assert read_page(tmp_path / "r.html").all("figure", class_="asked") == []


def test_structural_zeros_stand_below_the_outcomes(root: Element, tmp_path: Path) -> None:
    assert root.all("p", class_="structural") == []
    grade = GradeRecord(ran=interval(0.1), log="verifier/test-stdout.txt")
    only = step("task", 0, 0.0, implicit=True, grade=grade)
    result = episode(steps=[only], outcome=Outcome.FAILED, reward=0.0)
    shape = json.dumps({"code": f"bad{HOSTILE[:20]}", "error": "x"})
    write(tmp_path, result, {"verifier/structural.json": shape})
    write_report(tmp_path, tmp_path / "r.html", [result])
    [line] = read_page(tmp_path / "r.html").all("p", class_="structural")
    assert line.text.endswith(f"(wrong shape, not tested): 1 bad{HOSTILE[:20]}")
    known = numbers(tmp_path, [result])
    write_report(tmp_path, tmp_path / "r.html", [result], private_verifier=True, found=known)
    assert read_page(tmp_path / "r.html").all("p", class_="structural") == []


def test_numbers_that_somebody_has_are_not_counted_again(
    job: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = build(job)
    known = numbers(job, results)
    write_report(job, tmp_path / "a.html", results)
    monkeypatch.setattr("pytest_harbor.report.html.numbers", lambda *_: 1 / 0)
    write_report(job, tmp_path / "b.html", results, found=known)
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_the_episodes_trajectory_is_linked_and_not_repeated(tmp_path: Path) -> None:
    result = episode(steps=[step("one")])
    write(tmp_path, result, {"trajectory.json": '{"steps": ["a needle"]}'})
    write_report(tmp_path, tmp_path / "r.html", [result])
    page = everything(tmp_path / "r.html")
    assert f"./{result.episode}/trajectory.json" in page
    assert "needle" not in page


def test_a_call_of_the_user_is_talk_also_under_the_names_of_opencode_and_gemini(
    tmp_path: Path,
) -> None:
    grant = GrantRecord(name="user-server", mode="required", tools=("ask_user",))
    turn = TurnRecord(ran=interval(1.0), ended="exited", trajectory="agent/trajectory.json")
    result = episode(steps=[step("task", implicit=True, grants=(grant,), turn=turn)])
    names = ("user-server_ask_user", "mcp_user-server_ask_user", "bash")
    calls = [{"tool_call_id": n, "function_name": n, "arguments": {}} for n in names]
    steps = [{"step_id": 1, "source": "agent", "message": "", "tool_calls": calls}]
    write(tmp_path, result, {"agent/trajectory.json": json.dumps({"steps": steps})})
    write_report(tmp_path, tmp_path / "r.html", [result])
    [chat] = [each for each in packed(read_page(tmp_path / "r.html")) if "messages" in each]
    assert [call["talk"] for call in chat["messages"][0]["calls"]] == [True, True, False]
