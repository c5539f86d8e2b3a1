"""A scripted model answers by its rules, in the shape of each wire, whole and streamed."""

from __future__ import annotations

import json
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from pytest_harbor.errors import RecipeError
from pytest_harbor.gateway import Gateway, ModelServer, Terms, script_rules
from pytest_harbor.gateway.script_rules import complete, load_script, shell_arguments
from pytest_harbor.gateway.sse import Splitter, data_of
from pytest_harbor.gateway.wires.base import Tool, find_tool

EPISODE = """
model: scripted-1
rules:
  - when: {turn: 1}
    think: I should ask.
    say: Let me ask.
    call: {tool: ask_user, arguments: {question: 'Which colour?'}}
  - when: {turn: 2, tool: blue}
    shell: echo blue > hello.txt
  - when: {turn: 2}
    say: That was no colour.
  - when: {turn: 3}
    say: "Done: hello.txt is written."
"""
ASK_SCHEMA = {
    "type": "object",
    "properties": {"question": {"type": "string"}, "urgency": {"enum": ["low", "high"]}},
    "required": ["question", "urgency"],
}
SHELL_SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}}}


class Side:
    """One wire from a client's side: how it asks, and what it reads out of an answer."""

    path: str

    def place(self, stream: bool) -> str:
        return self.path

    def body(self, turns: list[tuple[Any, str]], tools: bool = True) -> dict[str, Any]:
        raise NotImplementedError

    def read(self, answer: dict[str, Any]) -> tuple[str, str, list[tuple[str, Any, str]]]:
        """Thinking, text, and calls as (name, arguments, id)."""
        raise NotImplementedError

    def join(self, events: list[dict[str, Any]]) -> dict[str, Any]:
        raise NotImplementedError


class ChatSide(Side):
    path = "chat/completions"

    def body(self, turns: list[tuple[Any, str]], tools: bool = True) -> dict[str, Any]:
        messages: list[dict[str, Any]] = [
            {"role": "system", "content": "You are an agent."},
            {"role": "user", "content": [{"type": "text", "text": "Write a file."}]},
        ]
        for answer, result in turns:
            message = answer["choices"][0]["message"]
            messages.append(message)
            call = message["tool_calls"][0]["id"]
            messages.append({"role": "tool", "tool_call_id": call, "content": result})
            reminder = "<system-reminder>\nIt is a CLI that speaks.\n</system-reminder>"
            messages.append({"role": "user", "content": reminder})
        offered = {"user-server_ask_user": ASK_SCHEMA, "bash": SHELL_SCHEMA}
        functions = [
            {"type": "function", "function": {"name": name, "parameters": schema}}
            for name, schema in offered.items()
        ]
        return {"model": "m", "messages": messages, **({"tools": functions} if tools else {})}

    def read(self, answer: dict[str, Any]) -> tuple[str, str, list[tuple[str, Any, str]]]:
        message = answer["choices"][0]["message"]
        calls = [
            (each["function"]["name"], json.loads(each["function"]["arguments"]), each["id"])
            for each in message.get("tool_calls", ())
        ]
        assert answer["choices"][0]["finish_reason"] == ("tool_calls" if calls else "stop")
        assert answer["usage"]["total_tokens"] > 2
        return message.get("reasoning_content", ""), message["content"] or "", calls

    def join(self, events: list[dict[str, Any]]) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": ""}
        finish = usage = None
        for event in events:
            for choice in event["choices"]:
                delta = choice["delta"]
                for name in ("content", "reasoning_content"):
                    if name in delta:
                        message[name] = message.get(name, "") + delta[name]
                for call in delta.get("tool_calls", ()):
                    message.setdefault("tool_calls", []).append(call)
                finish = choice["finish_reason"] or finish
            usage = event.get("usage") or usage
        return {"choices": [{"message": message, "finish_reason": finish}], "usage": usage}


class ResponsesSide(Side):
    path = "responses"

    def body(self, turns: list[tuple[Any, str]], tools: bool = True) -> dict[str, Any]:
        items: list[dict[str, Any]] = [
            {"role": "developer", "content": "You are an agent."},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Go"}]},
        ]
        for answer, result in turns:
            items += answer["output"]
            call = answer["output"][-1]["call_id"]
            items.append({"type": "function_call_output", "call_id": call, "output": result})
        ask = {"type": "function", "name": "ask_user", "parameters": ASK_SCHEMA}
        offered = [
            {"type": "namespace", "name": "mcp__user_server", "tools": [ask]},
            {"type": "function", "name": "exec_command", "parameters": SHELL_SCHEMA},
            {"type": "web_search"},
        ]
        return {"model": "m", "input": items, **({"tools": offered} if tools else {})}

    def read(self, answer: dict[str, Any]) -> tuple[str, str, list[tuple[str, Any, str]]]:
        thinking = text = ""
        calls = []
        for item in answer["output"]:
            if item["type"] == "reasoning":
                thinking = item["summary"][0]["text"]
            elif item["type"] == "message":
                text = item["content"][0]["text"]
            else:
                name = "__".join(filter(None, (item.get("namespace"), item["name"])))
                calls.append((name, json.loads(item["arguments"]), item["call_id"]))
        assert answer["status"] == "completed"
        return thinking, text, calls

    def join(self, events: list[dict[str, Any]]) -> dict[str, Any]:
        assert events[0]["type"] == "response.created"
        assert [event["sequence_number"] for event in events] == list(range(len(events)))
        done = [each["item"] for each in events if each["type"] == "response.output_item.done"]
        last = events[-1]
        assert last["type"] == "response.completed"
        assert last["response"]["output"] == done
        deltas = [each["delta"] for each in events if each["type"] == "response.output_text.delta"]
        texts = [item["content"][0]["text"] for item in done if item["type"] == "message"]
        assert "".join(deltas) == "".join(texts)
        return last["response"]


class MessagesSide(Side):
    path = "messages"

    def body(self, turns: list[tuple[Any, str]], tools: bool = True) -> dict[str, Any]:
        messages: list[dict[str, Any]] = [
            {"role": "user", "content": "Write a file."},
            {"role": "system", "content": [{"type": "text", "text": "# Environment"}]},
        ]
        for answer, result in turns:
            messages.append({"role": "assistant", "content": answer["content"]})
            call = answer["content"][-1]["id"]
            content = [
                {"type": "tool_result", "tool_use_id": call, "content": result},
                {"type": "text", "text": "<system-reminder>Remember.</system-reminder>"},
            ]
            messages.append({"role": "user", "content": content})
        offered = {"mcp__user-server__ask_user": ASK_SCHEMA, "Bash": SHELL_SCHEMA}
        named = [{"name": name, "input_schema": schema} for name, schema in offered.items()]
        thinking = {"type": "enabled", "budget_tokens": 1000}
        body = {"model": "m", "messages": messages, "thinking": thinking, "max_tokens": 99}
        return {**body, "system": "You are an agent.", **({"tools": named} if tools else {})}

    def read(self, answer: dict[str, Any]) -> tuple[str, str, list[tuple[str, Any, str]]]:
        thinking = text = ""
        calls = []
        for block in answer["content"]:
            if block["type"] == "thinking":
                assert block["signature"]
                thinking = block["thinking"]
            elif block["type"] == "text":
                text = block["text"]
            else:
                calls.append((block["name"], block["input"], block["id"]))
        assert answer["stop_reason"] == ("tool_use" if calls else "end_turn")
        return thinking, text, calls

    def join(self, events: list[dict[str, Any]]) -> dict[str, Any]:
        message, blocks = dict(events[0]["message"]), []
        for event in events:
            if event["type"] == "content_block_start":
                blocks.append(dict(event["content_block"]))
            elif event["type"] == "content_block_delta":
                delta = dict(event["delta"])
                kind = delta.pop("type")
                if kind == "input_json_delta":
                    blocks[-1]["input"] = json.loads(delta["partial_json"])
                for name in ("text", "thinking", "signature"):
                    blocks[-1][name] = blocks[-1].get(name, "") + delta.get(name, "")
            elif event["type"] == "message_delta":
                message |= event["delta"]
        assert events[-1]["type"] == "message_stop"
        return {**message, "content": blocks}


class GeminiSide(Side):
    path = "models/m:generateContent"

    def place(self, stream: bool) -> str:
        return "models/m:streamGenerateContent?alt=sse" if stream else self.path

    def body(self, turns: list[tuple[Any, str]], tools: bool = True) -> dict[str, Any]:
        contents: list[dict[str, Any]] = [{"role": "user", "parts": [{"text": "Write a file."}]}]
        for answer, result in turns:
            content = answer["candidates"][0]["content"]
            call = content["parts"][-1]["functionCall"]
            response = {"id": call["id"], "name": call["name"], "response": {"output": result}}
            parts = [{"functionResponse": response}, {"text": "Remember."}]
            contents += [content, {"role": "user", "parts": parts}]
        shell = {"type": "OBJECT", "properties": {"command": {"type": "STRING"}}}
        offered = [
            {"name": "mcp_user-server_ask_user", "parametersJsonSchema": ASK_SCHEMA},
            {"name": "bash", "parameters": shell},
        ]
        body = {
            "contents": contents,
            "systemInstruction": {"parts": [{"text": "You are an agent."}]},
            "generationConfig": {"thinkingConfig": {"includeThoughts": True}},
        }
        return {**body, **({"tools": [{"functionDeclarations": offered}]} if tools else {})}

    def read(self, answer: dict[str, Any]) -> tuple[str, str, list[tuple[str, Any, str]]]:
        thinking = text = ""
        calls = []
        candidate = answer["candidates"][0]
        for part in candidate["content"]["parts"]:
            if call := part.get("functionCall"):
                calls.append((call["name"], call["args"], call["id"]))
            elif part.get("thought"):
                thinking += part["text"]
            else:
                text += part["text"]
        assert candidate["finishReason"] == "STOP"
        assert answer["usageMetadata"]["totalTokenCount"] > 2
        return thinking, text, calls

    def join(self, events: list[dict[str, Any]]) -> dict[str, Any]:
        assert all("finishReason" not in event["candidates"][0] for event in events[:-1])
        parts = [part for event in events for part in event["candidates"][0]["content"]["parts"]]
        last = events[-1]["candidates"][0]
        candidate = {**last, "content": {"role": "model", "parts": parts}}
        return {**events[-1], "candidates": [candidate]}


ALL_SIDES = (ChatSide(), ResponsesSide(), MessagesSide(), GeminiSide())
SIDES = [pytest.param(side, id=side.path) for side in ALL_SIDES]


@pytest.fixture(scope="module")
def one_gateway() -> Iterator[Gateway]:
    with Gateway(environment={}) as gateway:
        yield gateway


@pytest.fixture
def gateway(one_gateway: Gateway) -> Iterator[Gateway]:
    """One gateway for all tests here, each with an episode of its own."""
    yield one_gateway
    for name in tuple(one_gateway.episodes):
        one_gateway.revoke(name)


def scripted(gateway: Gateway, tmp_path: Path, rules: str, party: str = "agent") -> str:
    path = tmp_path / "rules.yaml"
    path.write_text(rules)
    server = ModelServer("policy", provider="script", rules=path)
    return gateway.open(tmp_path.name, party, server).v1


def ask(client: httpx2.Client, url: str, side: Side, body: dict[str, Any], stream: bool) -> Any:
    body = {**body, "stream": stream, "stream_options": {"include_usage": True}}
    answer = client.post(f"{url}/{side.place(stream)}", json=body)
    assert answer.status_code == 200, answer.text
    if not stream:
        return answer.json()
    events = [data_of(event) for event in Splitter().feed(answer.content)]
    return side.join([json.loads(event) for event in events if event != "[DONE]"])


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("side", SIDES)
def test_an_episode_of_three_turns(
    side: Side, stream: bool, gateway: Gateway, client: httpx2.Client, tmp_path: Path
) -> None:
    url = scripted(gateway, tmp_path, EPISODE)
    first = ask(client, url, side, side.body([]), stream)
    thinking, text, ((name, arguments, number),) = side.read(first)
    assert (thinking, text) == ("I should ask.", "Let me ask.")
    assert name.endswith("ask_user")
    assert arguments == {"question": "Which colour?", "urgency": "low"}
    second = ask(client, url, side, side.body([(first, "I like blue.")]), stream)
    _, _, ((name, arguments, other),) = side.read(second)
    assert name in ("bash", "Bash", "exec_command")
    assert arguments == {"command": "echo blue > hello.txt"}
    assert other != number
    third = ask(client, url, side, side.body([(first, "I like blue."), (second, "")]), stream)
    assert side.read(third)[1:] == ("Done: hello.txt is written.", [])
    summary = gateway.summary(tmp_path.name)
    assert (summary.calls, summary.failed, summary.cost_usd) == (3, 0, 0.0)
    assert summary.input_tokens > summary.output_tokens > 10
    offered = gateway.offered(tmp_path.name, "agent", None)
    assert offered is not None
    assert find_tool(["ask_user"], offered) is not None
    assert find_tool(["ask_the_user"], offered) is None
    assert gateway.offered(tmp_path.name, "agent", "another step") is None


@pytest.mark.parametrize("side", SIDES)
def test_a_request_without_tools_is_not_answered_with_a_call(
    side: Side, gateway: Gateway, client: httpx2.Client, tmp_path: Path
) -> None:
    url = scripted(gateway, tmp_path, "rules: [{when: {turn: 1}, shell: ls}]")
    answer = ask(client, url, side, side.body([], tools=False), stream=False)
    assert side.read(answer)[1:] == ("A scripted reply.", [])


def test_thinking_is_only_shown_to_a_client_that_asked(
    gateway: Gateway, client: httpx2.Client, tmp_path: Path
) -> None:
    side = MessagesSide()
    url = scripted(gateway, tmp_path, EPISODE)
    body = {name: value for name, value in side.body([]).items() if name != "thinking"}
    assert side.read(ask(client, url, side, body, stream=False))[0] == ""


CHAT = ChatSide()


def test_conditions_counts_and_parties(
    gateway: Gateway, client: httpx2.Client, tmp_path: Path
) -> None:
    rules = """
    rules:
      - {when: {party: user}, say: I am the user.}
      - {when: {call: [1, 3]}, say: "One or three, {turn}."}
      - {when: {user: '(?i)WRITE', system: agent}, times: 1, say: Once.}
      - {when: {offers: nothing_like_it}, say: Never.}
      - {when: {last: file, model: '^m$'}, say: Else.}
    """
    agent = scripted(gateway, tmp_path, rules)
    user = scripted(gateway, tmp_path, rules, "user")
    said = [CHAT.read(ask(client, agent, CHAT, CHAT.body([]), False))[1] for _ in range(4)]
    assert said == ["One or three, {turn}.", "Once.", "One or three, {turn}.", "Else."]
    assert CHAT.read(ask(client, user, CHAT, CHAT.body([]), False))[1] == "I am the user."


def test_given_usage_counts(gateway: Gateway, client: httpx2.Client, tmp_path: Path) -> None:
    url = scripted(
        gateway, tmp_path, "rules: [{say: Hi, usage: {input: 90, output: 5, cached: 40}}]"
    )
    for side in ALL_SIDES:
        for stream in (False, True):
            ask(client, url, side, side.body([]), stream)
    summary = gateway.summary(tmp_path.name)
    assert (summary.input_tokens, summary.output_tokens, summary.cached_tokens) == (720, 40, 320)


def test_delay_and_pace(gateway: Gateway, client: httpx2.Client, tmp_path: Path) -> None:
    url = scripted(gateway, tmp_path, "rules: [{say: Hi, delay: 0.2, pace: 0.03}]")
    began = time.monotonic()
    ask(client, url, CHAT, CHAT.body([]), stream=True)
    assert time.monotonic() - began > 0.2 + 4 * 0.03


@pytest.mark.parametrize("stream", [False, True])
def test_faults(stream: bool, gateway: Gateway, client: httpx2.Client, tmp_path: Path) -> None:
    rules = """
    rules:
      - {when: {call: 1}, fault: {status: 429, retry_after: 2, message: not now}}
      - {when: {call: 2}, say: abcdef, fault: {cut: 2}}
      - {fault: {hang: true}}
    """
    url = f"{scripted(gateway, tmp_path, rules)}/chat/completions"
    body = {**CHAT.body([]), "stream": stream}
    busy = client.post(url, json=body)
    assert (busy.status_code, busy.headers["retry-after"]) == (429, "2")
    assert busy.json()["error"]["message"] == "not now"
    with pytest.raises(httpx2.RemoteProtocolError):
        client.post(url, json=body)
    with pytest.raises(httpx2.ReadTimeout):
        client.post(url, json=body, timeout=0.2)
    summary = gateway.revoke(tmp_path.name)
    assert (summary.failed, summary.abandoned) == (2, 1)
    assert summary.faults == {"cut": 1, "rate_limited": 1}


def test_what_no_rule_meets_is_said(
    gateway: Gateway, client: httpx2.Client, tmp_path: Path
) -> None:
    rules = "rules: [{when: {call: 1}, call: {tool: fly}}, {when: {turn: 9}, say: x}]"
    url = f"{scripted(gateway, tmp_path, rules)}/chat/completions"
    first, second = (client.post(url, json=CHAT.body([])) for _ in range(2))
    assert (first.status_code, second.status_code) == (400, 400)
    assert first.json()["error"]["message"] == (
        "rules.yaml calls fly in turn 1, which the request does not offer; "
        "it offers user-server_ask_user, bash"
    )
    assert second.json()["error"]["message"] == (
        "rules.yaml has no rule for turn 1 (call 2 of agent); the last message is 'Write a file.'"
    )
    assert gateway.summary(tmp_path.name).faults == {"unscripted": 2}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("rules: [{say: a}, {when: {turn: x}}]", "rule 2 when turn"),
        ("rules: [{when: {user: '('}}]", "rule 1 when user"),
        ("[]", "a script is a mapping with a list of rules: {rules: [...]}"),
        ("rules: [{sya: hello}]", "rule 1: unknown key sya; did you mean say?"),
        ("rules: [{when: {zzz: 1}}]", "rule 1 when: unknown key zzz; known: "),
        ("rules: [", "is not valid YAML"),
    ],
)
def test_a_script_that_is_wrong_is_refused_with_the_place(
    text: str, said: str, gateway: Gateway, tmp_path: Path
) -> None:
    with pytest.raises(RecipeError) as caught:
        scripted(gateway, tmp_path, text)
    assert said in str(caught.value)
    with pytest.raises(RecipeError, match="cannot be read"):
        load_script(tmp_path / "none.yaml")


def test_a_new_attempt_plays_from_the_start(
    gateway: Gateway, client: httpx2.Client, tmp_path: Path
) -> None:
    rules = "rules: [{when: {call: 1}, say: First.}, {say: Later.}]"
    for _ in range(2):
        url = scripted(gateway, tmp_path, rules)
        said = [CHAT.read(ask(client, url, CHAT, CHAT.body([]), False))[1] for _ in range(2)]
        assert said == ["First.", "Later."]
        gateway.revoke(tmp_path.name)
        gateway.begin(tmp_path.name, Terms())


def test_the_example_in_the_documentation_is_a_script(tmp_path: Path) -> None:
    documentation = script_rules.__doc__ or ""
    example = documentation.split("\n\n")[1]
    (tmp_path / "rules.yaml").write_text(textwrap.dedent(example))
    assert len(load_script(tmp_path / "rules.yaml").rules) == 4


def test_tools_are_found_by_their_own_name_first() -> None:
    plain, prefixed, grouped = Tool("ask"), Tool("mcp__u__ask"), Tool("ask", "mcp__u")
    assert find_tool(["ask"], [prefixed, plain]) is plain
    assert find_tool(["ask"], [prefixed]) is prefixed
    assert find_tool(["mcp__u__ask"], [grouped]) is grouped
    assert find_tool(["x", "as?"], [plain]) is plain
    assert find_tool(["sk"], [plain]) is None


def test_arguments_are_made_to_fit() -> None:
    listed = Tool("shell", schema={"properties": {"command": {"type": "array"}}})
    assert shell_arguments(listed, "ls") == {"command": ["bash", "-lc", "ls"]}
    coded = Tool("exec_command", schema={"properties": {"cmd": {}, "tty": {}}})
    assert shell_arguments(coded, "ls") == {"cmd": "ls"}
    kinds = {"a": "integer", "b": "boolean", "c": "array", "d": "string"}
    properties = {name: {"type": kind} for name, kind in kinds.items()}
    tool = Tool("t", schema={"properties": properties, "required": [*kinds]})
    assert complete(tool, {"d": "x"}) == {"a": 0, "b": False, "c": [], "d": "x"}
