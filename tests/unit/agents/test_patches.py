"""Codex' patches: read, laid over a text, refused where they do not fit."""

from __future__ import annotations

import re

import pytest

from pytest_harbor.agents.patches import FilePatch, Hunk, PatchError, patched, read_patch
from pytest_harbor.agents.recorded import Patch, Unknown, meaning
from pytest_harbor.trajectory import ToolCall

WHOLE = """*** Begin Patch
*** Add File: a/new.txt
+one
+
+ two
*** Delete File: gone.txt
*** Update File: old.py
*** Move to: young.py
@@ def second():
     x = 1

-    y = 2
+    y = 3
@@
-end
+END
*** End of File
*** End Patch
"""
FILES = (
    FilePatch("a/new.txt", content="one\n\n two\n"),
    FilePatch("gone.txt", deleted=True),
    FilePatch(
        "old.py",
        hunks=(
            Hunk("def second():", ("    x = 1", "", "    y = 2"), ("    x = 1", "", "    y = 3")),
            Hunk("", ("end",), ("END",)),
        ),
        moved="young.py",
    ),
)
BODY = "    x = 1\n\n    y = 2\n"


def test_a_patch_is_read() -> None:
    assert read_patch(WHOLE) == FILES


def test_hunks_are_found_below_their_line_and_below_each_other() -> None:
    text = f"end\ndef first():\n{BODY}def second():\n{BODY}end\n"
    assert patched(text, FILES[2].hunks) == (
        f"end\ndef first():\n{BODY}def second():\n{BODY.replace('2', '3')}END\n"
    )


@pytest.mark.parametrize(
    ("text", "hunk", "after"),
    [
        ("a  \nb\n", Hunk("", ("a", "b"), ("c",)), "c\n"),  # blanks at the end do not matter
        ("a\nb\n", Hunk("", (), ("c",)), "a\nb\nc\n"),
        ("a\nb\n", Hunk("a", (), ("c",)), "a\nc\nb\n"),
        ("a\nb", Hunk("", ("b",), ()), "a\n"),
    ],
)
def test_small_hunks(text: str, hunk: Hunk, after: str) -> None:
    assert patched(text, (hunk,)) == after


def test_what_does_not_fit_is_said() -> None:
    with pytest.raises(PatchError, match=re.escape("not there: 'z'")):
        patched("a\n", (Hunk("", ("z",), ()),))


def test_every_way_to_write_one_is_understood() -> None:
    def call(name: str, **arguments: str) -> object:
        made = ToolCall(tool_call_id="c", function_name=name, arguments=dict(arguments))
        return meaning(made, {})

    assert call("apply_patch", input=WHOLE) == Patch(FILES)
    assert call("apply_patch", patchText=WHOLE) == Patch(FILES)
    assert call("exec_command", cmd=f"apply_patch <<'EOF'\n{WHOLE.strip()}\nEOF\n") == Patch(FILES)
    assert call("apply_patch", input="x") == Unknown("the patch has no beginning or no end")
    assert call("apply_patch") == Unknown("its arguments hold no patch")
