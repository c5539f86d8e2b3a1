"""Cards: what they may say, and what is said about those that say something else."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml

from pytest_harbor.agents.base import Grant
from pytest_harbor.agents.card import (
    OWN_CARDS,
    Card,
    Words,
    card_names,
    find_card,
    load_card,
    render,
)
from pytest_harbor.agents.find import find_agent
from pytest_harbor.agents.installed import CliAgent
from pytest_harbor.errors import RecipeError
from pytest_harbor.recipe import Layer, make_recipe, read_layer
from pytest_harbor.settings import Recipe

MINE: dict[str, Any] = {
    "name": "mine",
    "version": "1.2",
    "install": {"npm": ["mine@{{ version }}"]},
    "probe": "mine --version",
    "command": "mine --model {{ model | sh }}",
    "logs": "{{ home }}/.mine",
    "reader": "codex",
    "wire": "chat",
}


def write(folder: Path, name: str = "mine", /, **changes: Any) -> Path:
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump({k: v for k, v in (MINE | changes).items() if v is not None}))
    return path


def a_recipe(**values: Any) -> Recipe:
    table = {f"agent.{key}": value for key, value in values.items()}
    return make_recipe([Layer(table, {key: f"a test: {key}" for key in table})])


@pytest.mark.parametrize("name", card_names())
def test_our_cards_are_cards(name: str) -> None:
    card = find_card(name)
    assert card is not None
    assert card.name == name


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"comand": "x"}, "unknown key comand; did you mean command?"),
        ({"install": {"nmp": ["x"]}}, "unknown key install.nmp; did you mean npm?"),
        ({"probe": None}, "the key probe is missing; docs/agents.md"),
        ({"version": 1.2}, "version: Input should be a valid string, got 1.2"),
        ({"wire": "grpc"}, "wire: Input should be 'responses'"),
        ({"reader": "codx"}, "reader: there is no reader 'codx'; known: aider,"),
        ({"name": "yours"}, "but a card is found by its file's name, 'mine'"),
        ({"install": {}}, "install: it names no package"),
        ({"env": {"A": "{{ modle }}"}}, "env.A: 'modle' is undefined; templates may name tools,"),
        ({"files": {"{{ hom }}/x": ""}}, "files.{{ hom }}/x: 'hom' is undefined"),
        ({"command": "{% if %}"}, "command: Expected an expression"),
    ],
)
def test_what_a_card_cannot_say(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    path = write(tmp_path, **changes)
    with pytest.raises(RecipeError) as caught:
        load_card(path)
    assert f"{path}: {said}" in str(caught.value) or said in str(caught.value)
    assert str(caught.value).startswith(str(path))


def test_every_problem_of_a_card_is_told(tmp_path: Path) -> None:
    path = write(tmp_path, probe=None, extra="x")
    with pytest.raises(RecipeError) as caught:
        load_card(path)
    assert len(str(caught.value).splitlines()) == 2


@pytest.mark.parametrize("text", ["[1, 2]", "a: [", "\xff"])
def test_what_is_no_card_at_all(tmp_path: Path, text: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(RecipeError, match=r"mine\.yaml"):
        load_card(path)


def test_a_card_of_ones_own_comes_before_ours(tmp_path: Path) -> None:
    write(tmp_path)
    write(tmp_path, "codex", name="codex", version="0.0.1")
    assert "mine" in card_names([tmp_path])
    agent = find_agent(a_recipe(name="codex", cards=[str(tmp_path)]))
    assert isinstance(agent, CliAgent)
    assert agent.version == "0.0.1"
    assert (OWN_CARDS / "codex.yaml").is_file()


def test_folders_of_cards_are_found_from_their_recipe(tmp_path: Path) -> None:
    (tmp_path / "harbor.yaml").write_text("agent: {name: mine, cards: [mine-too]}\n")
    (tmp_path / "mine-too").mkdir()
    write(tmp_path / "mine-too")
    agent = find_agent(make_recipe([read_layer(tmp_path / "harbor.yaml")]))
    assert agent.name == "mine"


def test_version_and_effort_come_from_the_recipe(tmp_path: Path) -> None:
    write(tmp_path, efforts={"high": "--think"})
    cards = [str(tmp_path)]
    assert find_agent(a_recipe(name="mine", cards=cards, version="7", effort="high")).version == "7"
    with pytest.raises(
        RecipeError, match=r"a test: agent.effort: .* no effort 'low'; it knows high"
    ):
        find_agent(a_recipe(name="mine", cards=cards, effort="low"))


def test_the_nearest_name_is_offered() -> None:
    with pytest.raises(RecipeError, match=r"no agent .codx.; did you mean codex\?"):
        find_agent(a_recipe(name="codx"))


def test_an_agent_can_do_what_its_card_says(tmp_path: Path) -> None:
    write(tmp_path, transports=[], needs=["bash"], resume="mine -r {{ session }}")
    can = find_agent(a_recipe(name="mine", cards=[str(tmp_path)])).capabilities
    assert (can.needs_model, can.needs_network, can.resumes) == (True, True, True)
    assert can.binaries == ("bash",)
    assert can.mcp_transports == frozenset()


def test_nobody_resumes_without_a_reader(tmp_path: Path) -> None:
    """The session's name is in the log."""
    write(tmp_path, resume="mine -r {{ session }}", reader=None)
    assert not find_agent(a_recipe(name="mine", cards=[str(tmp_path)])).capabilities.resumes


def test_a_folder_of_cards_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=r"there is no folder .*crds"):
        find_agent(a_recipe(name="mine", cards=[str(tmp_path / "crds")]))


def test_values_stay_what_they_are_in_templates() -> None:
    words = Words(
        tools="/t", home="/h", out="/o", start="", python="", arch="x64", machine="x86_64",
        version="1", model="a'b\"c<&>", servers=(Grant("u", "streamable-http", "http://x/?a=1&b"),),
    )  # fmt: skip
    assert render("{{ model | json }}", words) == '"a\'b\\"c<&>"'
    assert render("{{ model | sh }}", words) == "'a'\"'\"'b\"c<&>'"
    assert render("{{ model }}\n", words) == "a'b\"c<&>\n"
    looped = "{% for server in servers %}{{ server.name }}={{ server.url }}{% endfor %}"
    assert render(looped, words) == "u=http://x/?a=1&b"


def test_the_card_in_the_documentation_is_one(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs/agents.md").read_text()
    (text,) = re.findall(
        r"^```yaml\n(# cards/(\S+)\.yaml\n.*?)^```", page, re.DOTALL | re.MULTILINE
    )
    path = tmp_path / f"{text[1]}.yaml"
    path.write_text(text[0])
    card = load_card(path)
    assert card.name == text[1]
    assert card.resume is not None


def test_the_documentation_tells_every_key_and_word_of_a_card() -> None:
    page = (Path(__file__).parents[3] / "docs/agents.md").read_text()
    cells = re.findall(r"^\| (`[^|]+`) \|", page, re.MULTILINE)
    rows = set(re.findall(r"`([a-z_.]+)`", " ".join(cells)))
    keys = {*Card.model_fields, "install.npm", "install.pip"} - {"install"}
    assert keys <= rows
    assert {field.name for field in fields(Words)} <= set(re.findall(r"`([a-z_]+)`", page))
    for name in card_names():
        card = find_card(name)
        assert card is not None
        assert f"| `{name}` | {card.version} |" in page
