"""Excerpts of logs, packed within a budget."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path

from pytest_harbor.report.inline import HEAD, TAIL, Budget, excerpt, pack


def test_a_small_log_is_whole_and_clean(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"\x1b[31mred\x1b[0m\r\n10%\r100%\nend \xff\n")
    assert excerpt(path) == ("red\n100%\nend \ufffd\n", path.stat().st_size)


def test_a_large_log_keeps_whole_lines_at_both_ends(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text("".join(f"line {n:06d}\n" for n in range(100_000)))
    text, length = excerpt(path) or ("", 0)
    assert length == 1_200_000
    lines = text.splitlines()
    assert lines[0] == "line 000000"
    assert lines[-1] == "line 099999"
    [mark] = [each for each in lines if "not shown" in each]
    assert mark == "… 1.1 MB of 1.2 MB not shown …"
    assert all(len(each) == 11 for each in lines if each and each != mark)
    assert len(text) < HEAD + TAIL + 100


def test_one_endless_line_is_cut_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text("x" * 500_000)
    text, _ = excerpt(path) or ("", 0)
    assert HEAD + TAIL <= len(text) < HEAD + TAIL + 100


def test_a_secret_is_taken_out_before_it_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text("hunter22\n" * 30_000)
    text, _ = excerpt(path, lambda each: each.replace("hunter22", "-")) or ("", 0)
    assert "hunter" not in text


def test_no_file_is_none(tmp_path: Path) -> None:
    assert excerpt(tmp_path / "gone") is None
    assert excerpt(tmp_path) is None


def test_packed_data_come_back(tmp_path: Path) -> None:
    data = {"text": "é </script> \ud800", "n": [1, None]}
    packed = pack(data)
    assert "<" not in packed
    back = json.loads(gzip.decompress(base64.b64decode(packed)))
    assert back == {"text": "é </script> ?", "n": [1, None]}
    assert pack(data) == packed


def test_a_budget_serves_the_higher_rank_first_whatever_comes_first(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in "ab"]
    for path in paths:
        path.write_text("x" * 10_000)
    noise = base64.b64encode(bytes(range(256)) * 40).decode()
    budget = Budget(9_000, [(1, paths[0]), (0, paths[1])])
    assert budget.take(paths[0], lambda: noise + "".join(map(chr, range(500, 6000)))) is None
    assert budget.take(paths[1], lambda: "x" * 10_000) is not None


def test_a_file_nobody_planned_for_is_not_packed(tmp_path: Path) -> None:
    budget = Budget(1_000_000, [(0, tmp_path / "a")])
    assert budget.take(tmp_path / "b", lambda: "text") is None
    assert budget.take(tmp_path / "a", lambda: "text") is not None
    assert budget.take(tmp_path / "a", lambda: "text") is None, "once"
