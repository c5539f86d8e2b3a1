"""The model loop without an engine: how it ends, and how it keeps within a model's context."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import httpx2
import pytest

from pytest_harbor.agents.base import ModelDoor, Turn, TurnResult
from pytest_harbor.agents.dialogue import Dialogue
from pytest_harbor.agents.hands import shortened
from pytest_harbor.agents.model_loop import ModelLoop
from pytest_harbor.errors import AgentError
from pytest_harbor.gateway import Access, Gateway, ModelServer
from pytest_harbor.settings import LoopTable
from pytest_harbor.task.timeouts import Deadline
from pytest_harbor.trajectory import Trajectory


class Main:
    """A container that answers each command with one output."""

    def __init__(self, output: str = "", exit_code: int | None = 0) -> None:
        self.ran: list[str] = []
        self.files: dict[str, bytes] = {}
        self._output, self._exit_code = output, exit_code

    def user(self, _user: object) -> SimpleNamespace:
        return SimpleNamespace(uid=0, gid=0)

    def run(self, command: str, **_more: object) -> SimpleNamespace:
        self.ran.append(command)
        timed_out = self._exit_code is None
        output = self._output.encode()
        return SimpleNamespace(output=output, exit_code=self._exit_code, timed_out=timed_out)

    def put(self, entries: list[Any]) -> None:
        self.files |= {entry.path: entry.source for entry in entries}

    @property
    def trajectory(self) -> Trajectory:
        return Trajectory.model_validate_json(self.files["/logs/agent/trajectory.json"])


@pytest.fixture
def gateway() -> Iterator[Gateway]:
    with Gateway(environment={}) as gateway:
        yield gateway


def scripted(gateway: Gateway, tmp_path: Path, rules: str) -> Access:
    path = tmp_path / "rules.yaml"
    path.write_text(rules)
    return gateway.open("ep", "agent", ModelServer("policy", provider="script", rules=path))


def take(access: Access, main: Main, limits: LoopTable | None = None, **more: Any) -> TurnResult:
    agent = more.pop("agent", None) or ModelLoop("m", limits)
    turn = Turn(
        step="one",
        index=0,
        instruction="Do it.",
        container=main,  # type: ignore[arg-type]
        user=None,
        deadline=more.pop("deadline", None) or Deadline.after(30, "the turn"),
        model=ModelDoor("m", access.url),
        **more,
    )
    return agent.run_turn(turn)  # type: ignore[no-any-return]


def test_it_ends_when_the_model_calls_no_tool(gateway: Gateway, tmp_path: Path) -> None:
    rules = """
    rules:
      - when: {turn: 1}
        think: Hm.
        shell: ls
        usage: {input: 100, output: 10, cached: 40}
      - {when: {tool: 'a file\\n\\[exit code 3\\]'}, say: Done., usage: {input: 120, output: 1}}
    """
    main = Main("a file", 3)
    result = take(scripted(gateway, tmp_path, rules), main)
    assert (result.ended, result.message, main.ran) == ("exited", "", ["ls"])
    assert (result.input_tokens, result.output_tokens, result.cached_tokens) == (220, 11, 40)
    _, act, last = main.trajectory.steps
    assert (act.reasoning_content, last.message) == ("Hm.", "Done.")
    assert act.observation is not None
    assert act.observation.results[0].extra == {"exit_code": 3}


AGAIN = "rules: [{shell: ls, usage: {input: 10, output: 5}}]"


@pytest.mark.parametrize(
    ("limits", "rules", "said", "ran"),
    [
        ({"calls": 2}, AGAIN, "stopped after 2 model calls (agent.loop.calls)", 2),
        ({"tokens": 40}, AGAIN, "stopped after 45 tokens (agent.loop.tokens)", 3),
        ({}, "rules: [{fault: {status: 401, message: no such key}}]", "HTTP 401: no such key", 0),
        ({}, "rules: [{when: {turn: 9}, say: x}]", "HTTP 400: rules.yaml has no rule", 0),
    ],
)
def test_what_else_ends_it_is_an_error_in_plain_words(
    limits: dict[str, Any], rules: str, said: str, ran: int, gateway: Gateway, tmp_path: Path
) -> None:
    main = Main()
    result = take(scripted(gateway, tmp_path, rules), main, LoopTable(**limits))
    assert result.ended == "error"
    assert said in result.message
    assert len(main.ran) == ran
    assert main.trajectory.steps[0].message == "Do it."


def test_a_model_that_is_too_slow_is_a_timeout(gateway: Gateway, tmp_path: Path) -> None:
    access = scripted(gateway, tmp_path, "rules: [{say: x, fault: {hang: true}}]")
    result = take(access, Main(), deadline=Deadline.after(0.3, "the turn"))
    assert result.ended == "timeout"
    assert "the turn" in result.message


def test_a_session_belongs_to_its_container(gateway: Gateway, tmp_path: Path) -> None:
    rules = "rules: [{when: {call: 1}, say: One.}, {when: {call: 2, last: 'Do it'}, say: Two.}]"
    access, main, agent = scripted(gateway, tmp_path, rules), Main(), ModelLoop("m")
    first = take(access, main, agent=agent)
    second = take(access, main, agent=agent, session=first.session)
    assert (second.ended, second.session) == ("exited", first.session)
    with pytest.raises(AgentError, match="not known"):
        take(access, main, agent=agent, session="another")
    with pytest.raises(AgentError, match="not known"):
        take(access, Main(), agent=agent, session=first.session)


class Client:
    """A client of a model that answers as a test says, by the number of the call."""

    def __init__(self, answers: Callable[[int, list[Any]], httpx2.Response]) -> None:
        self._answers, self.asked = answers, 0
        self.body: dict[str, Any] = {}

    def __call__(self, **_more: object) -> Self:
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def post(self, _url: str, *, json: dict[str, Any], **_more: object) -> httpx2.Response:
        self.asked += 1
        self.body = json
        return self._answers(self.asked, json["messages"])


def calling(number: int, tool: str, arguments: str) -> httpx2.Response:
    call = {"id": f"c{number}", "function": {"name": tool, "arguments": arguments}}
    return httpx2.Response(200, json={"choices": [{"message": {"tool_calls": [call]}}]})


def saying(text: str, finish: str = "stop") -> httpx2.Response:
    choice = {"message": {"content": text}, "finish_reason": finish}
    return httpx2.Response(200, json={"choices": [choice]})


def test_mistakes_of_the_model_are_told_to_it(
    monkeypatch: pytest.MonkeyPatch, gateway: Gateway, tmp_path: Path
) -> None:
    told: list[str] = []

    def answer(number: int, messages: list[Any]) -> httpx2.Response:
        told.append(messages[-1]["content"])
        wrong = [("bash", '{"cmd": "ls"}'), ("bash", "ls {"), ("fly", "{}")]
        return calling(number, *wrong[number - 1]) if number <= 3 else saying("Well.", "length")

    monkeypatch.setattr(httpx2, "Client", Client(answer))
    main = Main()
    result = take(scripted(gateway, tmp_path, "rules: []"), main)
    mistake = "error: bash takes one argument, the text 'command'"
    assert told[1:] == [mistake, mistake, "error: there is no tool 'fly'; there are bash"]
    assert (result.ended, main.ran) == ("error", [])
    assert "cut off at its length limit" in result.message


def test_a_context_that_is_smaller_than_thought_is_found_out(
    monkeypatch: pytest.MonkeyPatch, gateway: Gateway, tmp_path: Path
) -> None:
    def answer(number: int, messages: list[Any]) -> httpx2.Response:
        if len(_json(messages)) > 9_000:
            error = {"error": {"message": "This model's maximum context length is 2250 tokens"}}
            return httpx2.Response(400, json=error)
        return calling(number, "bash", '{"command": "ls"}') if number < 20 else saying("Done.")

    monkeypatch.setattr(httpx2, "Client", Client(answer))
    main = Main("x" * 1000)
    result = take(scripted(gateway, tmp_path, "rules: []"), main)
    assert result.ended == "exited", result.message
    notes = [str(step.message) for step in main.trajectory.steps if step.source == "system"]
    assert notes[0].startswith("context: ")
    assert "older tool outputs shortened" in notes[0]


def test_a_context_that_cannot_be_made_smaller_is_the_end(
    monkeypatch: pytest.MonkeyPatch, gateway: Gateway, tmp_path: Path
) -> None:
    error = {"error": {"message": "prompt is too long"}}
    client = Client(lambda *_: httpx2.Response(400, json=error))
    monkeypatch.setattr(httpx2, "Client", client)
    result = take(scripted(gateway, tmp_path, "rules: []"), Main(), effort="high")
    assert (result.ended, result.message) == ("error", "HTTP 400: prompt is too long")
    assert client.asked == 1
    assert (client.body["model"], client.body["reasoning_effort"]) == ("m", "high")


def _json(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False)


def talk(*sizes: int) -> Dialogue:
    dialogue = Dialogue("System.", 1000)
    dialogue.tell("Do it.")
    for number, size in enumerate(sizes):
        call = {"id": f"c{number}", "function": {"name": "bash", "arguments": "{}"}}
        dialogue.hear({"content": None, "tool_calls": [call]})
        dialogue.show(f"c{number}", "y" * size)
    return dialogue


def test_what_fits_is_left_alone() -> None:
    dialogue = talk(100, 100, 100, 100)
    before = _json(dialogue.messages)
    assert dialogue.fit([]) == ""
    assert _json(dialogue.messages) == before


def test_older_outputs_are_shortened_first() -> None:
    dialogue = talk(2000, 2000, 300, 300, 300)
    assert dialogue.fit([]) == "context: 2 older tool outputs shortened, 0 older calls left out"
    older = [message["content"] for message in dialogue.messages if message["role"] == "tool"][:2]
    assert all("[... 1600 characters left out here ...]" in text for text in older)


def test_then_the_oldest_calls_go_each_with_its_output() -> None:
    dialogue = talk(*[700] * 10)
    assert dialogue.fit([]).endswith(" older calls left out")
    assert [message["role"] for message in dialogue.messages[:2]] == ["system", "user"]
    asked = {m["tool_calls"][0]["id"] for m in dialogue.messages if m["role"] == "assistant"}
    shown = {m["tool_call_id"] for m in dialogue.messages if m["role"] == "tool"}
    assert asked == shown
    assert {"c7", "c8", "c9"} <= asked
    assert "c0" not in asked
    assert len(_json(dialogue.messages)) / 4 <= 1000


def test_the_middle_is_left_out() -> None:
    assert shortened("abcdef", 6) == "abcdef"
    assert shortened("a" * 50 + "b" * 50, 10) == (
        "aaaaa\n[... 90 characters left out here ...]\nbbbbb"
    )
