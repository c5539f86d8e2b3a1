"""A person at a terminal: what is shown, what ends the turn, and where there is no terminal."""

from __future__ import annotations

import io
import os
import select
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_harbor.agents.base import Grant, Turn, TurnResult
from pytest_harbor.agents.find import find_agent
from pytest_harbor.agents.human import HumanAgent, greeting, open_terminal
from pytest_harbor.errors import AgentError, RecipeError
from pytest_harbor.recipe import Layer, make_recipe
from pytest_harbor.task.timeouts import Deadline


@dataclass(frozen=True)
class Person:
    """The other end of a terminal."""

    master: int
    device: str

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    def sees(self) -> str:
        text = b""
        while select.select([self.master], [], [], 0.2)[0]:
            text += os.read(self.master, 1 << 16)
        return text.decode()


@pytest.fixture
def person() -> Iterator[Person]:
    master, slave = os.openpty()
    yield Person(master, os.ttyname(slave))
    os.close(master)
    os.close(slave)


def turn(**more: Any) -> Turn:
    main = SimpleNamespace(id="0123456789abcdef", workdir="/a dir", stat=lambda _path: None)
    given: dict[str, Any] = {"user": None, "deadline": Deadline.after(20, "budget"), **more}
    return Turn("one", 0, "Do it.\n", main, **given)  # type: ignore[arg-type]


def answered(person: Person, *lines: str, **more: Any) -> TurnResult:
    def answer() -> None:
        for line in lines:
            time.sleep(0.1)
            person.type(line)

    thread = threading.Thread(target=answer)
    thread.start()
    try:
        return HumanAgent(person.device).run_turn(turn(**more))
    finally:
        thread.join()


@pytest.mark.parametrize("last", ["done\n", "\n", " DONE \n", "\x04"])
def test_a_word_an_empty_line_or_the_end_of_input_ends_the_turn(person: Person, last: str) -> None:
    result = answered(person, "wait\n", last)
    assert result.ended == "exited"
    shown = person.sees()
    assert "Do it." in shown
    assert shown.count("Type done") == 2  # at first, and after what was no answer
    assert shown.rstrip().endswith("Grading follows.")


def test_the_deadline_ends_it_too(person: Person) -> None:
    result = answered(person, deadline=Deadline.after(0.3, "budget"))
    assert result.ended == "timeout"
    assert "budget, after 0.3 s" in result.message
    assert "Time is up" in person.sees()


def test_it_is_told_where_to_work_and_no_secrets() -> None:
    url = "http://172.30.0.1:4000/abc/mcp"
    grant = Grant("user-server", "streamable-http", url)
    env = {"USER_SERVER_URL": url, "KEY": "canary"}
    text = greeting(turn(user="dev", env=env, grants=(grant,)))
    assert f"docker exec -it -w '/a dir' -u dev -e USER_SERVER_URL={url} 0123456789ab sh" in text
    assert f"user-server  streamable-http  {url}" in text
    assert "canary" not in text
    assert "You have 20 s." in text


def test_one_turn_at_a_time_has_the_terminal(person: Person) -> None:
    with (
        open_terminal(person.device),
        pytest.raises(AgentError, match="one task at a time"),
        open_terminal(person.device),
    ):
        pass


def test_without_a_terminal_stdin_must_be_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    with pytest.raises(AgentError, match="in a terminal, or with -s"), open_terminal("/nowhere"):
        pass
    reading, writing = os.pipe()
    with os.fdopen(reading) as own:
        monkeypatch.setattr(sys, "stdin", own)
        monkeypatch.setattr(sys, "__stdin__", own)
        os.write(writing, b"done\n")
        os.close(writing)
        with open_terminal("/nowhere") as terminal:
            deadline = Deadline.after(5)
            assert (terminal.line(deadline), terminal.line(deadline)) == ("done", "")


def test_workers_of_xdist_have_none(monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = make_recipe([Layer({"agent.name": "human"}, {"agent.name": "here"})])
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    assert find_agent(recipe).name == "human"
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw0")
    with pytest.raises(RecipeError, match=r"here: the agent 'human' .* without -n"):
        find_agent(recipe)
