"""What a trajectory's tool calls mean, whichever agent made them, and what it got to see of each.

Every CLI has its own names for its tools, and its own frame around what a command printed.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pytest_harbor.agents.patches import FilePatch, PatchError, read_patch
from pytest_harbor.trajectory import Content, Result, ToolCall


@dataclass(frozen=True)
class Shell:
    """A shell command."""

    command: str
    workdir: str | None = None


@dataclass(frozen=True)
class Write:
    """A whole file."""

    path: str
    content: str


@dataclass(frozen=True)
class Edit:
    """Texts to be replaced in a file."""

    path: str
    changes: tuple[tuple[str, str, bool], ...]
    """Old text, new text, and whether everywhere."""


@dataclass(frozen=True)
class Patch:
    """Several files at once."""

    files: tuple[FilePatch, ...]


@dataclass(frozen=True)
class Call:
    """A tool of a granted MCP server."""

    server: str
    tool: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class Look:
    """Something that changes nothing outside the agent."""


@dataclass(frozen=True)
class Unknown:
    """Something that cannot be done again; says why."""

    why: str


Action = Shell | Write | Edit | Patch | Call | Look | Unknown

_SHELLS: Final = frozenset(
    {
        *("bash", "exec_command", "run_shell_command", "shell", "local_shell", "execute_bash"),
        *("run_command", "terminal"),
    }
)
_WRITES: Final = frozenset({"write", "write_file", "writefile", "create_file"})
_EDITS: Final = frozenset(
    {"edit", "edit_file", "replace", "str_replace", "strreplace", "multiedit"}
)
_PATCHES: Final = frozenset({"apply_patch", "applypatch", "patch"})
_LOOKS: Final = frozenset(
    {
        *("read", "read_file", "readfile", "read_many_files", "view", "glob", "grep", "ls", "list"),
        *("list_directory", "search_file_content", "grep_search", "todowrite", "todo_write"),
        *("write_todos", "set_todo_list", "todolist", "update_plan", "toolsearch", "tool_search"),
        *("save_memory", "exec", "task", "agent"),
    }
)
"""``exec``, ``task`` and ``agent`` are frames: what was done in them stands as calls of its own."""
_ALIASES: Final[Mapping[str, str]] = {"ask_the_user": "ask_user"}
"""Tools that some CLIs are offered under another name."""

_COMMANDS: Final = ("command", "cmd", "script")
_WORKDIRS: Final = ("workdir", "cwd", "dir_path", "directory")
_PATHS: Final = ("file_path", "filePath", "path", "absolute_path")
_CONTENTS: Final = ("content", "file_text", "contents")
_TEXTS: Final = ("input", "patchText", "patch")
_IN_SHELL: Final = re.compile(r"\s*apply_patch <<\s*['\"]?(\w+)['\"]?\n(.*)\n\1\s*", re.DOTALL)
"""Codex runs no such command; it takes the patch out of it."""
_OLD: Final = ("old_string", "oldString", "old_str", "old")
_NEW: Final = ("new_string", "newString", "new_str", "new")


def meaning(call: ToolCall, offered: Mapping[str, Iterable[str]]) -> Action:
    """What a call does; ``offered`` are the tools of the servers that are there now."""
    name, given = call.function_name, call.arguments
    found = _mcp_tool(name, offered)
    if found is not None:
        return Call(*found, given)
    plain = name.lower()
    if plain in _SHELLS:
        return _shell(given)
    if plain in _WRITES:
        return _write(given)
    if plain in _EDITS:
        return _edit(given)
    if plain in _PATCHES:
        return _patch(_first(given, _TEXTS))
    if plain in _LOOKS:
        return Look()
    if plain.startswith("mcp_"):
        return Unknown("no such tool is granted here")
    return Unknown("it is not known what this tool does")


def _shell(given: Mapping[str, Any]) -> Action:
    command = _first(given, _COMMANDS)
    if isinstance(command, list) and all(isinstance(word, str) for word in command):
        is_script = len(command) == 3 and command[1] in ("-c", "-lc")
        command = command[2] if is_script else shlex.join(command)
    if not isinstance(command, str):
        return Unknown("its arguments hold no command")
    if found := _IN_SHELL.fullmatch(command):
        return _patch(found[2])
    if given.get("run_in_background") is True or given.get("is_background") is True:
        command = f"( {command}\n) >/dev/null 2>&1 &"
    workdir = _first(given, _WORKDIRS)
    return Shell(command, workdir if isinstance(workdir, str) and workdir else None)


def _write(given: Mapping[str, Any]) -> Action:
    path, content = _first(given, _PATHS), _first(given, _CONTENTS)
    if isinstance(path, str) and isinstance(content, str):
        return Write(path, content)
    return Unknown("its arguments hold no path or no content")


def _edit(given: Mapping[str, Any]) -> Action:
    path, several = _first(given, _PATHS), given.get("edits")
    changes = []
    for each in several if isinstance(several, list) else [given]:
        old, new = _first(each, _OLD), _first(each, _NEW)
        if not (isinstance(old, str) and isinstance(new, str)):
            return Unknown("its arguments do not hold the old and the new text")
        everywhere = each.get("replace_all") is True or each.get("replaceAll") is True
        changes.append((old, new, everywhere))
    if not isinstance(path, str):
        return Unknown("its arguments hold no path")
    return Edit(path, tuple(changes))


def _patch(text: Any) -> Action:
    if not isinstance(text, str):
        return Unknown("its arguments hold no patch")
    try:
        return Patch(read_patch(text))
    except PatchError as error:
        return Unknown(str(error))


def _first(given: Any, names: Iterable[str]) -> Any:
    table = given if isinstance(given, Mapping) else {}
    return next((table[name] for name in names if name in table), None)


def _mcp_tool(name: str, offered: Mapping[str, Iterable[str]]) -> tuple[str, str] | None:
    """The granted tool that a CLI's name means: with the server's in front of it, or alone."""
    asked = _bare(name)
    for server, tools in offered.items():
        for tool in tools:
            own = {tool, *(alias for alias, real in _ALIASES.items() if real == tool)}
            fronts = ("", f"{server}_", f"mcp_{server}_", f"{server}__", f"mcp__{server}__")
            if asked in {_bare(front + each) for front in fronts for each in own}:
                return server, tool
    return None


def _bare(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", name.lower())


@dataclass(frozen=True)
class Seen:
    """What an agent got to see, without the frame of its CLI."""

    text: str
    exit_code: int | None
    """None where it is not known; 0 is taken for granted where nothing says otherwise."""
    is_cut: bool = False
    """Whether the CLI left something out of it."""


_EXIT: Final = re.compile(
    r"(?:exited with code|exit code:?|failed with exit code:?|Exit Code:)\s*(-?\d+)", re.IGNORECASE
)
_FRAMED: Final = re.compile(
    r"(?:Command: .*?\n)?(?:Directory: .*?\n)?Output: (?P<text>.*?)(?:\nError: .*?)?"
    r"(?:\nExit Code: -?\d+)?(?:\nSignal: .*?)?"
    r"(?:\nBackground PIDs: .*?)?(?:\nProcess Group PGID: \d+)?",
    re.DOTALL,
)
"""gemini-cli and qwen-code."""
_HEADED: Final = re.compile(
    r"(?:(?:Chunk ID|Wall time|Exit code|Process exited|Original token count)[^\n]*\n)+Output:\n?",
    re.IGNORECASE,
)
"""codex."""
_STATED: Final = re.compile(
    r"\A(?:Exit code -?\d+|Process exited with code -?\d+)\n?"
    r"|\n?(?:\[exit code -?\d+\]|Command failed with exit code: -?\d+\.)\s*\Z",
    re.IGNORECASE,
)
_WRAPPED: Final = re.compile(r"\s*<untrusted_context>\n(.*)\n</untrusted_context>\s*", re.DOTALL)
_NOTHING: Final = re.compile(r"\s*[(<](?:\w+ completed with )?(?:no output|empty|none)[)>]\s*")
_CUT: Final = re.compile(r"[^\n]*(?:truncated|left out here|omitted)[^\n]*", re.IGNORECASE)


def seen(result: Result | None) -> Seen | None:
    """What came of a call; None where the trajectory does not say."""
    if result is None or result.content is None:
        return None
    extra = result.extra or {}
    code, text = extra.get("exit_code"), _text(result.content)
    if found := _WRAPPED.fullmatch(text):
        text = found[1]
    if table := _returned(text):
        code, text = table
        if code == _NOT_EXECUTED:
            return None
    if not isinstance(code, int):
        stated = _EXIT.search(text[:300]) or _EXIT.search(text[-200:])
        code = int(stated[1]) if stated else None if extra.get("is_error") is True else 0
    if head := _HEADED.match(text):
        text = text[head.end() :]
    elif framed := _FRAMED.fullmatch(text):
        text = framed["text"]
    text = _STATED.sub("", text)
    cut = _CUT.search(text)
    text = "" if _NOTHING.fullmatch(text) else text[: cut.start()] if cut else text
    return Seen(text, code, is_cut=cut is not None)


_NOT_EXECUTED: Final = -1


def _returned(text: str) -> tuple[Any, str] | None:
    """mini-swe-agent's result: JSON with the exit code in it."""
    try:
        found = json.loads(text)
    except ValueError:
        return None
    if isinstance(found, dict) and {"returncode", "output"} <= found.keys():
        return found["returncode"], str(found["output"])
    return None


def _text(content: Content) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part.text for part in content if part.text is not None)
