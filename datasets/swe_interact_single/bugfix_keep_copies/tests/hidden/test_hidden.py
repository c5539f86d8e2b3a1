"""What the user asked for, tried in a folder of files."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

APP = Path(os.environ["APP"])
USAGE = """usage: keep save FILE...
       keep list FILE
       keep restore FILE [N]
       keep prune N FILE
"""


class Keep(unittest.TestCase):
    """A folder, a clock and the script."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.store = ".keep"

    def keep(self, *words, at="090000"):
        env = {"PATH": os.environ["PATH"], "KEEP_NOW": f"20260105-{at}"}
        if self.store != ".keep":
            env["KEEP_DIR"] = self.store
        done = subprocess.run(
            ["/bin/sh", APP / "bin/keep", *words],
            cwd=self.folder, env=env, capture_output=True, text=True, timeout=30,
        )  # fmt: skip
        return done.returncode, done.stdout, done.stderr

    def ok(self, *words, **more):
        status, out, err = self.keep(*words, **more)
        self.assertEqual((status, err), (0, ""), words)
        return out.splitlines()

    def write(self, name, text="x"):
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return path

    def read(self, name):
        return (self.folder / name).read_text()

    def saved(self, name, *times):
        """Save a file at some times, each with the time as its text."""
        for time in times:
            self.write(name, time)
            self.ok("save", name, at=time)

    def stored(self):
        """Return the names in the store."""
        store = self.folder / self.store
        return sorted(str(p.relative_to(store)) for p in store.rglob("*") if p.is_file())


class StaysRight(Keep):
    """What works on the untouched repository."""

    def test_save_list_restore(self):
        self.saved("notes", "090000", "100000")
        self.assertEqual(self.stored(), ["notes.20260105-090000", "notes.20260105-100000"])
        self.assertEqual(self.ok("list", "notes"), ["20260105-100000", "20260105-090000"])
        self.ok("restore", "notes", "2")
        self.assertEqual(self.read("notes"), "090000")
        self.ok("restore", "notes")
        self.assertEqual(self.read("notes"), "100000")

    def test_several_files(self):
        self.write("a")
        self.write("b")
        self.ok("save", "a", "b")
        self.assertEqual(self.stored(), ["a.20260105-090000", "b.20260105-090000"])

    def test_another_store(self):
        self.store = "copies"
        self.saved("a", "090000")
        self.assertEqual(self.stored(), ["a.20260105-090000"])

    def test_restore_what_was_removed(self):
        self.saved("a", "090000")
        (self.folder / "a").unlink()
        self.ok("restore", "a")
        self.assertEqual(self.read("a"), "090000")

    def test_no_such_file(self):
        self.assertEqual(self.keep("save", "no"), (1, "", "keep: no such file: no\n"))

    def test_list_of_none(self):
        self.saved("a", "090000")
        self.assertEqual(self.ok("list", "b"), [])

    def test_usage(self):
        for words in ((), ("save",), ("list", "a", "b"), ("restore", "a", "1", "2"), ("prune", "1"),
                      ("nothing", "a")):  # fmt: skip
            with self.subTest(words):
                self.assertEqual(self.keep(*words), (2, "", USAGE))


class Names(Keep):
    """Names of files and of the store."""

    def everything(self, name):
        self.saved(name, "090000", "100000", "110000")
        self.assertEqual(self.stored()[0], f"{name}.20260105-090000")
        self.assertEqual(len(self.ok("list", name)), 3)
        self.ok("restore", name, "3")
        self.assertEqual(self.read(name), "090000")
        self.ok("prune", "1", name)
        self.assertEqual(self.ok("list", name), ["20260105-110000"])

    def test_blanks(self):
        self.everything("meeting  notes")

    def test_patterns(self):
        self.write("ab")
        self.write("b")
        for name in ("a*", "?b", "[ab]"):
            with self.subTest(name):
                self.everything(name)
                (self.folder / ".keep" / f"{name}.20260105-110000").unlink()

    def test_backslash_and_quote(self):
        self.everything("a\\tb")
        (self.folder / ".keep/a\\tb.20260105-110000").unlink()
        self.everything("it's \"it\" & $HOME")

    def test_dash(self):
        self.everything("-x")
        (self.folder / ".keep/-x.20260105-110000").unlink()
        self.everything("--help")

    def test_store_with_blanks(self):
        self.store = "my * copies"
        self.everything("a b")

    def test_no_such_file_with_blanks(self):
        self.assertEqual(self.keep("save", "a  b"), (1, "", "keep: no such file: a  b\n"))


class OwnCopies(Keep):
    """Whose copies are whose."""

    def test_longer_names(self):
        self.saved("a", "090000")
        self.saved("a.b", "100000")
        self.saved("a.20260105", "110000")
        self.assertEqual(self.ok("list", "a"), ["20260105-090000"])
        self.assertEqual(self.ok("list", "a.b"), ["20260105-100000"])
        self.ok("prune", "0", "a")
        self.assertEqual(self.stored(), ["a.20260105.20260105-110000", "a.b.20260105-100000"])

    def test_a_dot_is_a_dot(self):
        self.saved("axb", "090000")
        self.assertEqual(self.ok("list", "a.b"), [])

    def test_folders(self):
        self.saved("a", "090000")
        self.saved("sub/a", "100000")
        self.assertEqual(self.stored(), ["a.20260105-090000", "sub/a.20260105-100000"])
        self.assertEqual(self.ok("list", "a"), ["20260105-090000"])
        self.assertEqual(self.ok("list", "sub/a"), ["20260105-100000"])
        self.write("sub/a", "changed")
        self.ok("restore", "sub/a")
        self.assertEqual((self.read("sub/a"), self.read("a")), ("100000", "090000"))

    def test_the_current_folder(self):
        self.saved("./sub/a", "090000")
        self.assertEqual(self.stored(), ["sub/a.20260105-090000"])
        self.saved("./a", "090000")
        self.assertEqual(self.ok("list", "a"), ["20260105-090000"])


class SameSecond(Keep):
    """Several copies in one second."""

    def setUp(self):
        super().setUp()
        for number in range(1, 12):
            self.write("a", str(number))
            self.ok("save", "a")

    def test_nothing_is_overwritten(self):
        names = {f"a.20260105-090000-{number}" for number in range(2, 12)}
        self.assertEqual(set(self.stored()), {"a.20260105-090000", *names})
        self.assertEqual(self.read(".keep/a.20260105-090000"), "1")

    def test_newest_first(self):
        expected = [f"20260105-090000-{number}" for number in range(11, 1, -1)]
        self.assertEqual(self.ok("list", "a"), [*expected, "20260105-090000"])

    def test_restore_counts_from_the_newest(self):
        for number, text in (("1", "11"), ("2", "10"), ("10", "2"), ("11", "1")):
            self.ok("restore", "a", number)
            self.assertEqual(self.read("a"), text)

    def test_a_later_second_is_newer(self):
        self.ok("save", "a", at="090001")
        self.assertEqual(self.ok("list", "a")[:2], ["20260105-090001", "20260105-090000-11"])

    def test_prune_keeps_the_newest(self):
        self.ok("prune", "2", "a")
        self.assertEqual(self.ok("list", "a"), ["20260105-090000-11", "20260105-090000-10"])


class Save(Keep):
    """Files that are not there."""

    def test_goes_on(self):
        self.write("a")
        self.write("b")
        status, out, err = self.keep("save", "no", "a", "neither", "b")
        expected = "keep: no such file: no\nkeep: no such file: neither\n"
        self.assertEqual((status, out, err), (1, "", expected))
        self.assertEqual(self.stored(), ["a.20260105-090000", "b.20260105-090000"])


class Restore(Keep):
    """What comes back."""

    def test_permissions_and_time(self):
        path = self.write("run", "x")
        path.chmod(0o750)
        os.utime(path, (1_700_000_000, 1_700_000_000))
        self.ok("save", "run")
        path.write_text("y")
        path.chmod(0o600)
        self.ok("restore", "run")
        self.assertEqual(path.stat().st_mode & 0o777, 0o750)
        self.assertEqual(path.stat().st_mtime, 1_700_000_000)

    def test_no_such_copy(self):
        self.saved("a", "090000", "100000")
        self.write("a", "mine")
        self.assertEqual(self.keep("restore", "a", "3"), (1, "", "keep: no copy 3 of a\n"))
        self.assertEqual(self.read("a"), "mine")

    def test_no_copy_at_all(self):
        self.saved("b", "090000")
        self.write("a", "mine")
        self.assertEqual(self.keep("restore", "a"), (1, "", "keep: no copy 1 of a\n"))
        self.assertEqual(self.read("a"), "mine")

    def test_not_a_number(self):
        self.saved("a", "090000")
        self.write("a", "mine")
        for number in ("0", "x", "-1", "1.5", "", "1x", "1;p"):
            with self.subTest(number):
                expected = (2, "", f"keep: invalid number: {number}\n")
                self.assertEqual(self.keep("restore", "a", number), expected)
                self.assertEqual(self.read("a"), "mine")


class Prune(Keep):
    """How many stay."""

    def setUp(self):
        super().setUp()
        self.saved("a", "090000", "100000", "110000")

    def test_keeps_as_many(self):
        self.ok("prune", "2", "a")
        self.assertEqual(self.ok("list", "a"), ["20260105-110000", "20260105-100000"])

    def test_more_than_there_are(self):
        self.ok("prune", "5", "a")
        self.assertEqual(len(self.stored()), 3)

    def test_none(self):
        self.ok("prune", "0", "a")
        self.assertEqual(self.stored(), [])

    def test_not_a_number(self):
        for number in ("x", "-1", "1.5", "", "a b"):
            with self.subTest(number):
                expected = (2, "", f"keep: invalid number: {number}\n")
                self.assertEqual(self.keep("prune", number, "a"), expected)
                self.assertEqual(len(self.stored()), 3)


class Readme(unittest.TestCase):
    """The documentation."""

    def test_speaks_of_one_second(self):
        self.assertRegex((APP / "README.md").read_text(), r"second[\s\S]*-2|-2[\s\S]*second")
