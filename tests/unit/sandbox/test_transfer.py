"""Tar streams in and out: what a hostile container may send, and what it may not do with it."""

from __future__ import annotations

import io
import os
import random
import stat
import tarfile
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_harbor.errors import SandboxError
from pytest_harbor.sandbox.bounded import HeadTail
from pytest_harbor.sandbox.transfer import Entry, pack
from pytest_harbor.sandbox.unpack import Cut, Got, excluded, first_file, names, unpack

MB = 1 << 20


def member(name: str, body: bytes | None = b"", **facts: Any) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.mode = 0o644
    for key, value in facts.items():
        setattr(info, key, value)
    info.size = len(body or b"") if info.isreg() else 0
    return info, body or b""


def folder(name: str) -> tuple[tarfile.TarInfo, bytes]:
    return member(name, type=tarfile.DIRTYPE, mode=0o755)


def link(name: str, target: str) -> tuple[tarfile.TarInfo, bytes]:
    return member(name, type=tarfile.SYMTYPE, linkname=target)


def stream(*members: tuple[tarfile.TarInfo, bytes], piece: int = 1000) -> Iterator[bytes]:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for info, body in members:
            tar.addfile(info, io.BytesIO(body))
    data = buffer.getvalue()
    return (data[at : at + piece] for at in range(0, len(data), piece))


def unpacked(into: Path, *members: tuple[tarfile.TarInfo, bytes], **how: Any) -> Got:
    return unpack(stream(*members), into, **{"limit_bytes": MB, **how})


def everything(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*")}


class TestHostile:
    """Nothing leaves the tree, whatever the stream says (B35)."""

    @pytest.mark.parametrize(
        "name",
        [
            "../x",
            "t/../x",
            "t/../../x",
            "/etc/x",
            "t//x",
            "t/./x",
            "..",
            "t/..",
            "./x",
            "t/a/../../../x",
        ],
    )
    def test_names_that_lead_out(self, tmp_path: Path, name: str) -> None:
        got = unpacked(tmp_path / "in" / "to", folder("t"), member(name, b"evil"), member("t/ok"))
        assert got.files == 1
        assert any("leaves the tree" in skipped for skipped in got.skipped)
        assert everything(tmp_path) == {"in", "in/to", "in/to/ok"}

    @pytest.mark.parametrize(
        "target",
        [
            "/etc/passwd",
            "..",
            "../..",
            "../x",
            "a/../../x",
            "/",
            "a/b/../../../../etc",
            "../to-else",
        ],
    )
    def test_links_that_lead_out(self, tmp_path: Path, target: str) -> None:
        got = unpacked(tmp_path / "to", folder("t"), link("t/l", target), member("t/ok"))
        assert got.skipped == (f"l (a link to {target})",)
        assert everything(tmp_path / "to") == {"ok"}

    def test_writing_through_a_link(self, tmp_path: Path) -> None:
        outside = tmp_path / "outside"
        outside.mkdir()
        got = unpacked(
            tmp_path / "to",
            folder("t"), link("t/d", str(outside)), member("t/d/x", b"evil"),
            link("t/f", "ok"), member("t/f", b"file"), member("t/ok", b"good"),
        )  # fmt: skip
        assert everything(outside) == set()
        assert (tmp_path / "to/ok").read_bytes() == b"good"
        assert got.files == 3

    def test_links_that_lead_out_together(self, tmp_path: Path) -> None:
        """Each target looks harmless; what it passes through makes it lead out."""
        (tmp_path / "secret").write_text("s")
        got = unpacked(
            tmp_path / "to",
            folder("t"), folder("t/a"), folder("t/a/b"),
            link("t/a/b/top", "../.."), link("t/out", "a/b/top/../secret"), link("t/more", "out"),
        )  # fmt: skip
        assert [skipped.partition(" ")[0] for skipped in got.skipped] == ["out", "more"]
        assert everything(tmp_path / "to") == {"a", "a/b", "a/b/top"}

    def test_a_link_by_this_hosts_path(self, tmp_path: Path) -> None:
        got = unpacked(tmp_path / "to", folder("t"), link("t/l", str(tmp_path / "to" / "ok")))
        assert got.skipped == (f"l (a link to {tmp_path / 'to' / 'ok'})",)

    def test_links_that_stay_are_kept(self, tmp_path: Path) -> None:
        got = unpacked(
            tmp_path / "to",
            folder("t"), folder("t/runs"), folder("t/runs/1"), member("t/runs/1/x", b"1"),
            link("t/latest", "runs/1"), link("t/runs/back", "../latest/x"), link("t/dead", "none"),
        )  # fmt: skip
        assert got.skipped == ()
        assert (tmp_path / "to/runs/back").read_bytes() == b"1"
        assert (tmp_path / "to/dead").is_symlink()

    def test_a_link_in_place_of_the_whole_tree(self, tmp_path: Path) -> None:
        got = unpacked(tmp_path / "to", link("t", "/etc"))
        assert (got.files, got.skipped) == (0, ("t (a link to /etc)",))
        assert not (tmp_path / "to").is_symlink()

    @pytest.mark.parametrize(
        "kind", [tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE], ids=["char", "block", "fifo"]
    )
    def test_no_devices(self, tmp_path: Path, kind: bytes) -> None:
        got = unpacked(tmp_path / "to", folder("t"), member("t/dev", type=kind, devmajor=1))
        assert got.skipped == ("dev (neither file, folder nor link)",)
        assert everything(tmp_path / "to") == set()

    def test_no_setuid_and_nothing_unreadable(self, tmp_path: Path) -> None:
        unpacked(
            tmp_path / "to",
            member("t", type=tarfile.DIRTYPE, mode=0),
            member("t/s", b"", mode=0o6755, uid=0), member("t/n", b"x", mode=0, uid=4711),
        )  # fmt: skip
        modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in (tmp_path / "to").iterdir()}
        assert modes["s"] & 0o6000 == 0
        assert modes["s"] & 0o100
        assert modes["n"] & 0o600 == 0o600
        assert all(p.stat().st_uid == os.getuid() for p in (tmp_path / "to").iterdir())

    def test_hard_links(self, tmp_path: Path) -> None:
        got = unpacked(
            tmp_path / "to",
            folder("t"), member("t/a", b"content"), member("t/x.log", b"left out"),
            member("t/b", type=tarfile.LNKTYPE, linkname="t/a"),
            member("t/c", type=tarfile.LNKTYPE, linkname="/etc/passwd"),
            member("t/d", type=tarfile.LNKTYPE, linkname="t/x.log"),
            exclude=["*.log"],
        )  # fmt: skip
        assert (tmp_path / "to/b").read_bytes() == b"content"
        assert everything(tmp_path / "to") == {"a", "b"}
        assert [skipped[0] for skipped in got.skipped] == ["c", "d"]

    def test_one_name_many_times(self, tmp_path: Path) -> None:
        got = unpacked(
            tmp_path / "to",
            folder("t"), member("t/x", b"1"), folder("t/x"), member("t/x/y", b"2"),
            member("t/x", b"3"), link("t/x", "z"),
        )  # fmt: skip
        assert (tmp_path / "to/x/y").read_bytes() == b"2"
        assert len(got.skipped) == 2

    def test_what_stands_at_the_target_already(self, tmp_path: Path) -> None:
        outside = tmp_path / "outside"
        outside.mkdir()
        (tmp_path / "to").mkdir()
        (tmp_path / "to/d").symlink_to(outside)
        (tmp_path / "to/f").symlink_to(outside / "f")
        unpacked(tmp_path / "to", folder("t"), member("t/d/x", b"1"), member("t/f", b"2"))
        assert everything(outside) == set()
        assert (tmp_path / "to/f").read_bytes() == b"2"

    def test_names_that_this_host_cannot_store(self, tmp_path: Path) -> None:
        deep = "t/" + "/".join(["d" * 200] * 30)
        got = unpacked(
            tmp_path / "to", folder("t"), member("t/" + "n" * 300), member(deep), member("t/ok")
        )
        assert got.files == 1
        assert len(got.skipped) == 2
        assert all("cannot store" in skipped for skipped in got.skipped)

    def test_very_deep_folders_would_break_whoever_removes_them(self, tmp_path: Path) -> None:
        got = unpacked(tmp_path / "to", folder("t"), member("t/" + "d/" * 1500 + "x", b"1"))
        assert everything(tmp_path / "to") == set()
        assert "without end" in got.skipped[0]

    def test_strange_names(self, tmp_path: Path) -> None:
        wild = ["a\nb", "é", "\udcff\udcfe", " ", "-rf", "*", "a\tb"]
        got = unpacked(tmp_path / "to", folder("t"), *(member(f"t/{name}") for name in wild))
        assert got.files == len(wild)
        assert everything(tmp_path / "to") == set(wild)

    @pytest.mark.parametrize("keep", [100, 600, 1500, 2100])
    def test_a_stream_that_breaks_off(self, tmp_path: Path, keep: int) -> None:
        data = b"".join(stream(folder("t"), member("t/x", b"x" * 5000)))[:keep]
        with pytest.raises((tarfile.TarError, SandboxError)):
            unpack(iter([data]), tmp_path / "to", limit_bytes=MB)

    @given(
        st.lists(
            st.tuples(
                st.lists(st.sampled_from(["a", "b", "..", ".", ""]), min_size=1, max_size=4),
                st.sampled_from(["file", "folder", "link", "hard"]),
                st.lists(st.sampled_from(["a", "b", "..", "", "etc"]), min_size=1, max_size=5),
            ),
            max_size=12,
        )
    )
    def test_nothing_ever_leaves(
        self, tmp_path_factory: pytest.TempPathFactory, plan: list[tuple[list[str], str, list[str]]]
    ) -> None:
        root = tmp_path_factory.mktemp("any")
        members = []
        for parts, kind, target in plan:
            name, leads = "/".join(["t", *parts]), "/".join(target)
            members.append(
                {
                    "file": member(name, b"content"),
                    "folder": folder(name),
                    "link": link(name, leads),
                    "hard": member(name, type=tarfile.LNKTYPE, linkname=f"t/{leads}"),
                }[kind]
            )
        unpacked(root / "to", *members)
        assert everything(root) <= {"to"} | {f"to/{name}" for name in everything(root / "to")}
        for path in (root / "to").rglob("*"):
            resolved = Path(os.path.realpath(path))
            assert resolved == root / "to" or resolved.is_relative_to(root / "to")


class TestLimits:
    def test_a_large_file_keeps_both_ends_and_a_mark(self, tmp_path: Path) -> None:
        body = bytes(random.Random(1).randbytes(50_000))
        got = unpacked(tmp_path / "to", folder("t"), member("t/log", body), file_limit=1001)
        kept = (tmp_path / "to/log").read_bytes()
        assert (
            kept == body[:501] + b"\n[... 48999 of 50000 bytes left out here ...]\n" + body[-500:]
        )
        assert got.truncated == (Cut("log", 50_000, 1001),)
        assert got.bytes == 1001

    def test_all_together(self, tmp_path: Path) -> None:
        files = [member(f"t/{n}", b"x" * 400) for n in range(5)]
        got = unpacked(tmp_path / "to", folder("t"), *files, member("t/empty"), limit_bytes=1000)
        assert (got.files, got.bytes) == (4, 1000)
        assert got.truncated == (Cut("2", 400, 200),)
        assert [skipped.partition(" ")[0] for skipped in got.skipped] == ["3", "4"]
        assert (tmp_path / "to/empty").exists()

    def test_a_flood_stays_out_of_memory(self, tmp_path: Path) -> None:
        size = 300 * MB
        info = tarfile.TarInfo("t/log")
        info.size = size

        def flood() -> Iterator[bytes]:
            yield folder("t")[0].tobuf()
            yield info.tobuf(tarfile.GNU_FORMAT)
            for _ in range(size // MB):
                yield bytes(MB)
            yield bytes(1024)

        tracemalloc.start()
        got = unpack(flood(), tmp_path / "to", limit_bytes=2 * MB)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert got.truncated == (Cut("log", size, 2 * MB),)
        assert peak < 16 * MB

    def test_very_many_files_stay_out_of_memory(self, tmp_path: Path) -> None:
        header = member("t/left-out.log")[0].tobuf()
        chunks = [header * 100] * 20 + [bytes(1024)]
        tracemalloc.start()
        unpack(iter(chunks), tmp_path / "to", limit_bytes=MB, exclude=["*.log"])
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < MB // 2

    @pytest.mark.parametrize("piece", [1, 7, 100, 5000])
    @pytest.mark.parametrize("limit", [0, 1, 10, 11, 999, 1000, 1001])
    def test_head_and_tail(self, piece: int, limit: int) -> None:
        data = bytes(n % 251 for n in range(1000))
        kept = HeadTail(limit)
        for at in range(0, len(data), piece):
            kept.feed(data[at : at + piece])
        assert kept.size == 1000
        if limit >= 1000:
            assert kept.value() == data
        else:
            head, tail = limit - limit // 2, limit // 2
            note = b"\n[... %d of 1000 bytes left out here ...]\n" % (1000 - limit)
            assert kept.value() == data[:head] + note + (data[-tail:] if tail else b"")


class TestExclude:
    @pytest.mark.parametrize(
        ("pattern", "name", "out"),
        [
            ("*.pyc", "a/b/c.pyc", True),
            ("node_modules", "x/node_modules/y/z", True),
            ("node_modules", "x/node_modules_not/y", False),
            ("./build", "build/x", True),
            ("a/b", "a/b/c", True),
            ("a/b", "x/a/b", True),
            ("a/b", "a/c/b", False),
            ("build/", "build", True),
            ("[ab]", "a", True),
        ],
    )
    def test_as_tar_does(self, pattern: str, name: str, out: bool) -> None:
        assert excluded(name, [pattern]) is out

    def test_a_folder_with_all_that_is_in_it(self, tmp_path: Path) -> None:
        got = unpacked(
            tmp_path / "to",
            folder("t"), folder("t/skip"), member("t/skip/x", b"1"), member("t/keep", b"2"),
            exclude=["skip"],
        )  # fmt: skip
        assert (everything(tmp_path / "to"), got.skipped) == ({"keep"}, ())


class TestPack:
    def packed(self, *entries: Entry) -> list[tarfile.TarInfo]:
        data = b"".join(pack(entries))
        with tarfile.open(fileobj=io.BytesIO(data)) as tar:
            return tar.getmembers()

    def test_round_trip(self, tmp_path: Path) -> None:
        source = tmp_path / "source"
        source.write_bytes(os.urandom(3 * MB + 17))
        entries = [
            Entry("/t", None, 0o700),
            Entry("/t/file", source),
            Entry("/t/" + "long" * 60, b"content"),
            Entry("/t/\udcff", b""),
        ]
        got = unpack(pack(entries), tmp_path / "to", limit_bytes=10 * MB)
        assert got.files == 3
        assert (tmp_path / "to/file").read_bytes() == source.read_bytes()
        assert (tmp_path / "to" / ("long" * 60)).exists()

    def test_owner_mode_and_time(self, tmp_path: Path) -> None:
        source = tmp_path / "s"
        source.write_text("x")
        source.chmod(0o751)
        os.utime(source, (1, 981173106))
        own, given, made = self.packed(
            Entry("/a", source, uid=3_000_000),
            Entry("/b", source, 0o600, mtime=7),
            Entry("/c", b"", gid=5),
        )
        assert (own.mode, own.mtime, own.uid) == (0o751, 981173106, 3_000_000)
        assert (given.mode, given.mtime) == (0o600, 7)
        assert (made.mode, made.gid) == (0o644, 5)

    def test_a_fresh_folder_is_a_file_first(self) -> None:
        first, second = self.packed(Entry("/tests", None, 0o700, fresh=True))
        assert (first.isreg(), first.size, second.isdir()) == (True, 0, True)

    def test_a_file_that_shrinks_is_noticed(self, tmp_path: Path) -> None:
        source = tmp_path / "log"
        source.write_bytes(bytes(3 * MB))
        packing = pack([Entry("/log", source)])
        next(packing)
        os.truncate(source, MB)
        with pytest.raises(SandboxError, match="became shorter"):
            list(packing)

    def test_large_files_stay_out_of_memory(self, tmp_path: Path) -> None:
        source = tmp_path / "big"
        with source.open("wb") as file:
            file.truncate(200 * MB)
        tracemalloc.start()
        size = sum(len(piece) for piece in pack([Entry("/big", source)]))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert size > 200 * MB
        assert peak < 16 * MB


def test_names_and_first_file() -> None:
    tree = [folder("t"), member("t/a", b"1"), folder("t/b"), member("t/b/c"), member("t/d", b"2")]
    assert names(stream(*tree), limit=10) == ("a", "b", "d")
    assert names(stream(*tree), limit=2) == ("a", "b")
    assert first_file(stream(member("x", b"content")), 100) == b"content"
    assert first_file(stream(folder("x")), 100) is None
    assert first_file(stream(link("x", "/etc")), 100) is None
