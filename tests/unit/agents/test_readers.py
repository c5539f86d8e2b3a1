"""Readers of CLI logs: what real CLIs left behind (trimmed), and what may go wrong with it.

The logs come from real sessions with a scripted model: it asks the user, runs two commands, the
second of which fails, and says that it is done; then the session is resumed with another prompt.
"""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from harbor_beside import ask_harbor, needs_harbor

from pytest_harbor.agents.readers.base import BUILT_IN, Reading, find_reader
from pytest_harbor.agents.readers.draft import TOTAL_LIMIT
from pytest_harbor.agents.readers.lines import TEXT_LIMIT
from pytest_harbor.trajectory import Step, Trajectory, as_data, dump

LOGS = Path(__file__).parent / "logs"
SESSIONS = ("claude-code", "codex", "gemini-cli", "kimi-code", "opencode", "qwen-code")
"""CLIs that run sessions with tools and MCP."""
PROMPTS = {
    "first": "Write hello.txt. Ask what it shall hold.",
    "resumed": "What does it say?",
    "refused": "Write hello.txt.",
    "limit": "Write hello.txt. Ask.",
    "code": "Write hello.txt. Ask.",
    "nohost": "Write hello.txt. Ask.",
    "sub": "Have it done.",
}
AS_IT_WAS = -1
"""The exit status with which the CLI ended."""


def read(
    name: str, case: str, folder: Path | None = None, exit_code: int | None = AS_IT_WAS
) -> Reading:
    folder = folder or LOGS / name / case
    found = int((folder / "exit").read_text()) if exit_code == AS_IT_WAS else exit_code
    return find_reader(name).read(
        folder / "logs",
        stdout=folder / "stdout.jsonl",
        exit_code=found,
        instruction=PROMPTS[case],
        agent_name=name,
        agent_version="1.2.3",
        model="scripted-1",
    )


def steps(reading: Reading) -> tuple[Step, ...]:
    assert reading.trajectory is not None
    return reading.trajectory.steps


def acts(reading: Reading) -> list[Step]:
    return [step for step in steps(reading) if step.source == "agent"]


def calls(reading: Reading) -> list[tuple[str, dict[str, Any], str]]:
    """Each call with its arguments and what came of it."""
    found = []
    for step in acts(reading):
        results = step.observation.results if step.observation else ()
        answers = {result.source_call_id: str(result.content) for result in results}
        for call in step.tool_calls or ():
            answer = answers.get(call.tool_call_id, "")
            found.append((call.function_name, dict(call.arguments), answer))
    return found


@pytest.mark.parametrize("name", SESSIONS)
def test_a_session_is_told_in_full(name: str) -> None:
    reading = read(name, "first")
    assert (reading.ended, reading.message) == ("exited", "")
    assert reading.notes == ()
    assert reading.session
    ask, write, fail = calls(reading)
    assert ask[0].endswith(("ask_user", "ask_the_user"))
    assert ask[1] == {"question": "What shall the file hold?"}
    assert "The user says: write 'blue' in it." in ask[2]
    assert "printf 'blue\\n' > hello.txt" in json.dumps(write[1]).replace("\\\\", "\\")
    assert "blue\noops" in write[2]
    assert "exit 3" in json.dumps(fail[1])
    first, *_, last = acts(reading)
    assert first.message == "Let me ask."
    assert first.reasoning_content == "I should ask first."
    assert last.message == "Done: hello.txt is written."
    assert all(step.timestamp and step.timestamp.startswith("2026-") for step in steps(reading))
    assert {step.model_name for step in acts(reading)} == {"scripted-1"}
    said = [step.message for step in steps(reading) if step.source == "user"]
    assert [str(text).strip() for text in said] == [PROMPTS["first"]]


FAILURES = {
    "claude-code": {"is_error": True},
    "codex": {"exit_code": 3},
    "kimi-code": {"is_error": True},
    "opencode": {"exit_code": 3},
    "qwen-code": {"is_error": True},
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_failed_command_is_marked(name: str) -> None:
    failed = acts(read(name, "first"))[2].observation
    assert failed is not None
    assert FAILURES[name].items() <= (failed.results[0].extra or {}).items()


TOKENS = {"gemini-cli": (620, 90, 390)}  # its thoughts are counted beside the output


@pytest.mark.parametrize("name", SESSIONS)
def test_tokens_are_counted_with_cached_ones_inside(name: str) -> None:
    reading = read(name, "first")
    found = (reading.input_tokens, reading.output_tokens, reading.cached_tokens)
    assert found == TOKENS.get(name, (620, 70, 390))
    metrics = acts(reading)[1].metrics
    assert metrics is not None
    assert (metrics.prompt_tokens, metrics.cached_tokens) == (150, 100)
    assert reading.trajectory is not None
    assert reading.trajectory.final_metrics is not None
    assert reading.trajectory.final_metrics.total_prompt_tokens == 620


@pytest.mark.parametrize("name", SESSIONS)
def test_of_a_resumed_session_only_this_turn_is_told(name: str) -> None:
    reading = read(name, "resumed")
    assert reading.ended == "exited"
    assert reading.session == read(name, "first").session
    said = [str(step.message).strip() for step in steps(reading) if step.source == "user"]
    assert said == [PROMPTS["resumed"]]
    assert [step.message for step in acts(reading)] == ["", "It says blue."]
    whole = json.dumps(as_data(reading.trajectory)) if reading.trajectory else ""
    assert "Done: hello.txt" not in whole
    output = 33 if name == "gemini-cli" else 23
    assert (reading.input_tokens, reading.output_tokens, reading.cached_tokens) == (
        550,
        output,
        400,
    )


def test_the_cost_of_a_resumed_session_is_that_of_this_turn() -> None:
    """claude goes on counting, and says what the session cost in all."""
    assert read("claude-code", "first").cost_usd == 0.002398
    assert read("claude-code", "resumed").cost_usd == 0.00114


@pytest.mark.parametrize("name", BUILT_IN)
@pytest.mark.parametrize("exit_code", [AS_IT_WAS, 0, None])
def test_a_refusal_is_an_error_in_the_providers_words(name: str, exit_code: int | None) -> None:
    """Whatever the exit status says: gemini's is 145, and aider's is 0."""
    reading = read(name, "refused", exit_code=exit_code)
    assert reading.ended == "error"
    assert "the key was refused" in reading.message
    assert acts(reading) == []


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("claude-code", "error_max_turns"),
        ("mini-swe-agent", "LimitsExceeded"),
        ("gemini-cli", "Reached max session turns"),
        ("qwen-code", "turn limit"),
    ],
)
def test_a_turn_limit_is_an_error(name: str, words: str) -> None:
    """qwen prints no result then, and mini-swe-agent exits with 0."""
    reading = read(name, "limit")
    assert reading.ended == "error"
    assert words in reading.message
    assert len(acts(reading)) == (1 if name == "mini-swe-agent" else 2)


@pytest.mark.parametrize("name", SESSIONS)
@pytest.mark.parametrize(
    ("exit_code", "words"), [(7, "exited with 7"), (None, "was ended before its turn was over")]
)
def test_an_end_that_nobody_explains_is_told_by_the_exit_status(
    name: str, exit_code: int | None, words: str, tmp_path: Path
) -> None:
    cut = copied(name, "first", tmp_path)
    for path in [cut / "stdout.jsonl", *cut.glob("logs/**/*.jsonl")]:
        whole = path.read_text().splitlines(keepends=True)
        path.write_text("".join(whole[: len(whole) // 2]))
    reading = read(name, "first", cut, exit_code)
    assert reading.ended == "error"
    assert words in reading.message
    assert steps(reading)


def copied(name: str, case: str, to: Path) -> Path:
    return Path(shutil.copytree(LOGS / name / case, to / "copy"))


@pytest.mark.parametrize("name", SESSIONS)
def test_broken_lines_are_noted_and_the_rest_is_read(name: str, tmp_path: Path) -> None:
    whole = calls(read(name, "first"))
    folder = copied(name, "first", tmp_path)
    paths = [*folder.glob("logs/**/*.jsonl"), *folder.glob("stdout.jsonl")]
    for path in paths:
        path.write_bytes(b"\xff not json\n" + path.read_bytes() + b'{"type": "user", "mess\n[1]\n')
    reading = read(name, "first", folder)
    assert calls(reading) == whole
    for path in paths:
        assert any(note.startswith(f"{path.name}: 3 of ") for note in reading.notes)
    assert reading.trajectory is not None
    assert "stdout.jsonl: 3 of " in (reading.trajectory.notes or "")


@pytest.mark.parametrize("name", BUILT_IN)
def test_without_any_log_there_is_the_instruction_and_a_note(name: str, tmp_path: Path) -> None:
    (tmp_path / "exit").write_text("1")
    reading = read(name, "first", tmp_path)
    assert [step.message for step in steps(reading)] == [PROMPTS["first"]]
    assert reading.ended == "error"
    assert "exited with 1" in reading.message
    assert any("there is no " in note for note in reading.notes)


@pytest.mark.parametrize("name", ["claude-code", "opencode"])
def test_the_printed_stream_stands_in_for_a_missing_log(name: str, tmp_path: Path) -> None:
    folder = copied(name, "first", tmp_path)
    shutil.rmtree(folder / "logs")
    reading = read(name, "first", folder)
    assert calls(reading) == calls(read(name, "first"))
    assert [step.message for step in acts(reading)][-1] == "Done: hello.txt is written."
    assert {step.model_name for step in acts(reading)} == {"scripted-1"}
    assert steps(reading)[0].message == PROMPTS["first"]
    missing = ("there is no session log (<session>.jsonl)",)
    assert reading.notes == (missing if name == "claude-code" else ())


def test_what_a_script_of_codex_called_stands_beside_it() -> None:
    reading = read("codex", "code")
    assert reading.ended == "exited"
    assert [name for name, _, _ in calls(reading)] == [
        "exec",
        "mcp__user_server__ask_user",
        "exec",
        "exec_command",
    ]
    _, ask, _, command = calls(reading)
    assert ask[1:] == (
        {"question": "What shall the file hold?"},
        "The user says: write 'blue' in it.",
    )
    assert command[2] == "blue\n"
    script, inner = acts(reading)[1].tool_calls or ()
    assert (inner.extra or {})["inside"] == script.tool_call_id


def test_codex_without_its_code_mode_host_has_failed_although_it_exits_with_0() -> None:
    reading = read("codex", "nohost")
    assert (LOGS / "codex/nohost/exit").read_text() == "0"
    assert reading.ended == "error"
    assert "Code Mode is unavailable" in reading.message


def test_what_codex_is_told_by_its_makers_is_the_systems() -> None:
    told = [step for step in steps(read("codex", "first")) if step.source == "system"]
    assert str(told[0].message).startswith("You are a coding agent")
    assert any("<environment_context>" in str(step.message) for step in told)


def test_a_subagent_has_a_trajectory_of_its_own() -> None:
    reading = read("claude-code", "sub")
    assert reading.trajectory is not None
    (sub,) = reading.trajectory.subagent_trajectories or ()
    assert [step.source for step in sub.steps] == ["user", "agent", "agent"]
    assert "from below" in sub.model_dump_json()
    observation = acts(reading)[0].observation
    assert observation is not None
    (reference,) = observation.results[0].subagent_trajectory_ref or ()
    assert reference.trajectory_id == sub.trajectory_id


def test_mini_swe_agent_is_told_from_its_own_trajectory() -> None:
    reading = read("mini-swe-agent", "first")
    assert (reading.ended, reading.session, reading.notes) == ("exited", None, ())
    assert [call[1] for call in calls(reading)] == [
        {"command": "printf 'blue\\n' > hello.txt && cat hello.txt && echo oops >&2"},
        {"command": "exit 3"},
        {"command": "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"},
    ]
    first, second, _ = acts(reading)
    assert (first.message, first.reasoning_content) == ("Let me write it.", "I should look first.")
    assert first.timestamp == "2026-11-29T20:12:49.338+00:00"
    assert second.observation is not None
    assert second.observation.results[0].extra == {"exit_code": 3}
    assert (reading.input_tokens, reading.output_tokens, reading.cached_tokens) == (450, 60, 290)


def test_aider_is_told_from_its_markdown() -> None:
    reading = read("aider", "first")
    assert reading.ended == "exited"
    assert [step.source for step in steps(reading)] == ["system", "user", "agent"]
    _, user, answer = steps(reading)
    assert (user.message, user.timestamp) == (PROMPTS["first"], "2026-11-29 20:13:58")
    assert str(answer.message).startswith("Let me write it.\n\nhello.txt\n```\n<<<<<<< SEARCH")
    assert str(answer.message).endswith(">>>>>>> REPLACE\n```")
    assert answer.observation is not None
    assert "Applied edit to hello.txt\nCommit 2161627 feat: add hello" in str(
        answer.observation.results[0].content
    )
    assert (reading.input_tokens, reading.output_tokens) == (1800, 21)
    assert reading.notes == ("aider rounds the tokens that it tells",)


AIDER = """
# aider chat started at 2026-11-29 20:00:00

#### Before.
Earlier.

# aider chat started at 2026-11-29 21:00:00

> Aider v0.86.2

#### First line
#### second line

Quoting:
```
> not aider's
#### not the user's
```

> Tokens: 12k sent, 3.5k cache write, 4k cache hit, 1.2M received. Cost: $1,000.25 message.
> Retrying: litellm.RateLimitError
And again.
> Tokens: 10 sent, 5 received.
"""


def aider(tmp_path: Path, text: str) -> Reading:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs/chat.md").write_text(text)
    return read("aider", "first", tmp_path, 0)


def test_of_aiders_history_the_last_chat_counts(tmp_path: Path) -> None:
    reading = aider(tmp_path, AIDER)
    assert reading.ended == "exited"
    _, user, first, again = steps(reading)
    assert user.message == "First line\nsecond line"
    assert first.message == "Quoting:\n```\n> not aider's\n#### not the user's\n```"
    assert again.message == "And again."
    assert (reading.input_tokens, reading.output_tokens) == (19_510, 1_200_005)
    assert (reading.cached_tokens, reading.cost_usd) == (4000, 1000.25)


def test_an_error_after_aiders_last_answer_is_how_it_ended(tmp_path: Path) -> None:
    reading = aider(tmp_path, AIDER + "> litellm.InternalServerError: overloaded\n")
    assert (reading.ended, reading.message) == (
        "error",
        "litellm.InternalServerError: overloaded",
    )


def test_aider_without_an_answer_has_failed_although_it_exits_with_0(tmp_path: Path) -> None:
    reading = aider(tmp_path, "# aider chat started at 2026-11-29 21:00:00\n\n#### Do it.\n")
    assert (reading.ended, reading.message) == ("error", "aider got no answer from its model")


Change = Callable[[list[dict[str, Any]]], None]


def changed(folder: Path, change: Change) -> None:
    """Change the lines of the session log."""
    (path,) = folder.glob("logs/**/*.jsonl")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    change(lines)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def claude_results(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    blocks = [
        block
        for line in lines
        if line["type"] == "user"
        for block in line["message"]["content"]
        if isinstance(block, dict)
    ]
    return [block for block in blocks if block["type"] == "tool_result"]


def test_a_huge_output_is_kept_at_both_ends(tmp_path: Path) -> None:
    folder = copied("claude-code", "first", tmp_path)

    def flood(lines: list[dict[str, Any]]) -> None:
        claude_results(lines)[1]["content"] = "begin" + "x" * 3 * TEXT_LIMIT + "end"

    changed(folder, flood)
    answer = calls(read("claude-code", "first", folder))[1][2]
    assert answer.startswith("begin")
    assert answer.endswith("end")
    assert f"[... {2 * TEXT_LIMIT + 8 + 1} characters left out ...]" in answer
    assert len(answer) < TEXT_LIMIT + 100


def test_of_very_much_text_less_is_kept_of_each(tmp_path: Path) -> None:
    """The file must pass as a log of the agent's, which is cut apart above 8 MB."""
    folder = copied("claude-code", "first", tmp_path)

    def flood(lines: list[dict[str, Any]]) -> None:
        claude_results(lines)[1]["content"] = "begin" + "x" * 3 * TEXT_LIMIT
        more = [line for line in lines if line["type"] == "assistant"][-1]
        for number in range(30):
            use = {"type": "tool_use", "id": f"t{number}", "name": "Write"}
            block = {**use, "input": {"content": "y" * TEXT_LIMIT}}
            lines.append({**more, "message": {**more["message"], "content": [block]}})

    changed(folder, flood)
    reading = read("claude-code", "first", folder)
    assert "there is much text; 20000 characters of each were kept" in reading.notes
    assert reading.trajectory is not None
    assert "there is much text" in (reading.trajectory.notes or "")
    assert len(dump(reading.trajectory)) < TOTAL_LIMIT
    first, *_, last = (call for call in calls(reading) if call[0] in ("Bash", "Write"))
    assert first[2].startswith("begin")
    assert len(first[2]) < 21_000
    assert "characters left out" in last[1]["content"]


def test_a_result_without_its_call_is_kept_as_a_step(tmp_path: Path) -> None:
    folder = copied("claude-code", "first", tmp_path)

    def lose(lines: list[dict[str, Any]]) -> None:
        claude_results(lines)[1]["tool_use_id"] = "lost"

    changed(folder, lose)
    reading = read("claude-code", "first", folder)
    assert "there is a result of a call lost that is not in the log" in reading.notes
    kept = [step for step in steps(reading) if step.source == "system"]
    assert [step.message for step in kept] == ["blue\noops"]
    assert kept[0].extra == {"result_of": "lost"}


def test_odd_data_are_kept_in_a_form_that_can_be_written(tmp_path: Path) -> None:
    folder = copied("claude-code", "first", tmp_path)

    def spoil(lines: list[dict[str, Any]]) -> None:
        first, second, _ = claude_results(lines)
        first["content"] = [{"type": "image", "source": {"data": "AAAA"}}, {"type": "new", "x": 1}]
        second["content"] = "half \ud83d"
        for line in lines:
            if line["type"] == "assistant":
                line["timestamp"] = "yesterday"
                for block in line["message"]["content"]:
                    if block["type"] == "tool_use":
                        block["input"] = "no object"
                line["message"]["usage"] = {"input_tokens": "many", "output_tokens": None}

    changed(folder, spoil)
    reading = read("claude-code", "first", folder)
    ask, write, _ = calls(reading)
    assert ask[1] == {"input": "no object"}
    assert "[image: " in ask[2]
    assert '{"type": "new", "x": 1}' in ask[2]
    assert write[2] == "half ?"
    assert acts(reading)[0].timestamp is None
    assert reading.trajectory is not None
    Trajectory.model_validate_json(reading.trajectory.model_dump_json())


def test_logs_of_other_sessions_are_left_alone_and_named(tmp_path: Path) -> None:
    folder = copied("codex", "first", tmp_path)
    other = folder / "logs/2026/11/29/rollout-2027-01-01T00-00-00-other.jsonl"
    other.write_text("{}\n")
    reading = read("codex", "first", folder)
    assert len(calls(reading)) == 3
    assert reading.notes == (f"1 other session logs were not read: {other.name}",)


ODD = (None, 5, True, "x", "\ud83d", [], {}, [1], [{}], {"type": "text"}, 10**30, float("nan"))


def places(data: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The ways to all values in some data."""
    inside = data.items() if isinstance(data, dict) else enumerate(data)
    for key, value in inside:
        yield (*way, key)
        if isinstance(value, dict | list):
            yield from places(value, (*way, key))


def spoilt(text: str, chance: random.Random) -> str:
    """JSON lines in which one value is another."""
    lines = [json.loads(line) for line in text.splitlines()]
    *way, last = chance.choice(list(places(lines)))
    place: Any = lines
    for key in way:
        place = place[key]
    place[last] = chance.choice(ODD)
    return "".join(json.dumps(line) + "\n" for line in lines)


@pytest.mark.parametrize("name", sorted(set(BUILT_IN) - {"aider"}))
def test_nothing_in_a_log_makes_a_reader_stumble(name: str, tmp_path: Path) -> None:
    """Any value may be any other: what comes back is a reading that can be written."""
    chance = random.Random(name)
    for case in sorted((LOGS / name).iterdir()):
        folder = copied(name, case.name, tmp_path / case.name)
        paths = [path for path in folder.rglob("*.json*") if path.stat().st_size]
        for path in (chance.choice(paths) for _ in range(25)):
            whole = path.read_text()
            path.write_text(spoilt(whole, chance))
            reading = read(name, case.name, folder)
            assert reading.trajectory is not None
            Trajectory.model_validate_json(dump(reading.trajectory))
            path.write_text(whole)


@needs_harbor
def test_harbor_loads_all_of_them() -> None:
    cases = [(path.parent.name, path.name) for path in sorted(LOGS.glob("*/*"))]
    given = {
        f"{name}/{case}": as_data(found)
        for name, case in cases
        if (found := read(name, case).trajectory) is not None
    }
    assert len(given) == len(cases) >= 29
    assert ask_harbor(
        "from harbor.models.trajectories import Trajectory\n"
        "answer = [name for name, each in given.items() if Trajectory.model_validate(each)]",
        given,
    ) == list(given)
