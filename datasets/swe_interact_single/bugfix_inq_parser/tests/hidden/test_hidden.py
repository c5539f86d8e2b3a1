"""What the user asked for, tried on the program that make builds."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

APP = Path(os.environ["APP"])
INQ = APP / "build/inq"


def setUpModule():
    """Build from the sources alone, whatever lies in build/."""
    subprocess.run(["make", "-B", "-s", "build/inq"], cwd=APP, check=True, timeout=120)


class Inq(unittest.TestCase):
    """A file, and what inq says about it."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def inq(self, *words):
        done = subprocess.run([INQ, *words], cwd=self.folder, capture_output=True, timeout=30)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def file(self, content):
        data = content if isinstance(content, bytes) else content.encode()
        (self.folder / "t.ini").write_bytes(data)

    def value(self, line, key="key"):
        """Return what a line in a section gives for a key."""
        self.file(f"[s]\n{line}\n")
        status, out, err = self.inq("get", "t.ini", "s", key)
        self.assertEqual((status, err), (0, ""), line)
        return out.removesuffix("\n")

    def refusal(self, content, *words):
        """Return the message that a file earns, and check the rest."""
        self.file(content)
        status, out, err = self.inq(*(words or ("dump", "t.ini")))
        self.assertEqual((status, out), (2, ""), content)
        return err


class StaysRight(Inq):
    """What works on the untouched repository."""

    def test_sections_and_order(self):
        self.file("top = 1\n\n[one]\na = first thing\n[ two ]\nb=2\n[one]\nc = 3\n")
        expected = ".top=1\none.a=first thing\ntwo.b=2\none.c=3\n"
        self.assertEqual(self.inq("dump", "t.ini"), (0, expected, ""))
        self.assertEqual(self.inq("get", "t.ini", "", "top"), (0, "1\n", ""))

    def test_no_such_key(self):
        self.file("[s]\na = 1\n")
        self.assertEqual(self.inq("get", "t.ini", "s", "b"), (1, "", "inq: no such key: [s] b\n"))

    def test_no_such_file(self):
        self.assertEqual(self.inq("dump", "no")[0::2], (2, "no: No such file or directory\n"))

    def test_comments(self):
        self.file("# one\n; two\n   # three\n[s] # four\na = 1 ; five\nb = 2\t# six\nc = # seven\n")
        self.assertEqual(self.inq("dump", "t.ini"), (0, "s.a=1\ns.b=2\ns.c=\n", ""))

    def test_plain_quotes(self):
        self.assertEqual(self.value('key = " padded "'), " padded ")
        self.assertEqual(self.value('key = ""'), "")
        self.assertEqual(self.value("key = 'x'"), "'x'")
        self.assertEqual(self.value('key = say "x"'), 'say "x"')

    def test_windows_line_ends(self):
        self.file(b'[s]\r\na = 1\r\nb = "2"\r\n\r\nc = 3\r\n')
        self.assertEqual(self.inq("dump", "t.ini"), (0, "s.a=1\ns.b=2\ns.c=3\n", ""))

    def test_section_with_equals(self):
        self.file("[a=b]\nc = 1\n")
        self.assertEqual(self.inq("get", "t.ini", "a=b", "c"), (0, "1\n", ""))

    def test_messages(self):
        for line, message in (
            ("nonsense", "expected key = value"),
            ("= 1", "missing key"),
            ("[s", "bad section"),
            ("[s] x", "bad section"),
            ("a # b = c", "expected key = value"),
        ):
            with self.subTest(line):
                self.assertEqual(self.refusal(f"x=1\n{line}\n"), f"t.ini:2: {message}\n")

    def test_usage(self):
        self.assertEqual(self.inq()[0], 2)
        self.assertEqual(self.inq("get", "t.ini", "s")[0], 2)


class Equals(Inq):
    """The first equals sign separates."""

    def test_in_value(self):
        self.assertEqual(self.value("key = a=b=c"), "a=b=c")
        self.assertEqual(self.value("key = postgres://db?user=app"), "postgres://db?user=app")

    def test_at_the_end(self):
        self.assertEqual(self.value("key=Zm9v=="), "Zm9v==")


class Comments(Inq):
    """Where a comment begins."""

    def test_not_inside_a_word(self):
        self.assertEqual(self.value("key=http://host/#top"), "http://host/#top")
        self.assertEqual(self.value("key = a;b"), "a;b")

    def test_not_right_after_equals(self):
        self.assertEqual(self.value("key=#fff"), "#fff")
        self.assertEqual(self.value("key=;"), ";")

    def test_after_a_word_with_a_mark(self):
        self.assertEqual(self.value("key = a#b # c"), "a#b")

    def test_in_key_and_section(self):
        self.assertEqual(self.value("a#b = 1", key="a#b"), "1")
        self.file("[c#d]\nkey = 1\n")
        self.assertEqual(self.inq("get", "t.ini", "c#d", "key"), (0, "1\n", ""))


class Quotes(Inq):
    """Values in double quotes."""

    def test_marks_inside(self):
        self.assertEqual(self.value('key = "a # b ; c"'), "a # b ; c")
        self.assertEqual(self.value('key="#"'), "#")

    def test_equals_inside(self):
        self.assertEqual(self.value('key = "a = b"'), "a = b")

    def test_escapes(self):
        self.assertEqual(self.value(r'key = "say \"hi\""'), 'say "hi"')
        self.assertEqual(self.value(r'key = "a\nb\tc\\"'), "a\nb\tc\\")

    def test_escaped_backslash_before_n(self):
        self.assertEqual(self.value(r'key = "a\\nb"'), r"a\nb")

    def test_other_backslashes(self):
        self.assertEqual(self.value(r'key = "C:\dir\x"'), r"C:\dir\x")

    def test_none_outside(self):
        self.assertEqual(self.value(r"key = a\nb"), r"a\nb")

    def test_comment_behind(self):
        self.assertEqual(self.value('key = "a" # "b"'), "a")
        self.assertEqual(self.value('key = "a # b"\t; c'), "a # b")

    def test_unterminated(self):
        for line in ('key = "abc', 'key = "', r'key = "abc\"', 'key = "abc # "d' + "\\"):
            with self.subTest(line):
                if line.endswith("d\\"):
                    expected = "text after closing quote"
                else:
                    expected = "unterminated quote"
                self.assertEqual(self.refusal(f"[s]\n{line}\n"), f"t.ini:2: {expected}\n")

    def test_text_behind(self):
        for line in ('key = "a" b', 'key = "a"b', 'key = "a""b"', 'key = "a"#b'):
            with self.subTest(line):
                message = self.refusal(f"[s]\n{line}\n", "get", "t.ini", "s", "key")
                self.assertEqual(message, "t.ini:2: text after closing quote\n")


class Files(Inq):
    """Byte order marks, ends of files, long lines."""

    def test_byte_order_mark(self):
        self.file(b"\xef\xbb\xbf[s]\na = 1\n")
        self.assertEqual(self.inq("dump", "t.ini"), (0, "s.a=1\n", ""))
        self.file(b"\xef\xbb\xbfa = 1\n")
        self.assertEqual(self.inq("get", "t.ini", "", "a"), (0, "1\n", ""))

    def test_byte_order_mark_only_at_the_beginning(self):
        self.file(b"a = 1\n\xef\xbb\xbfb = 2\n")
        self.assertEqual(self.inq("dump", "t.ini"), (0, ".a=1\n.\ufeffb=2\n", ""))

    def test_no_newline_at_the_end(self):
        self.file("[s]\na = 12")
        self.assertEqual(self.inq("dump", "t.ini"), (0, "s.a=12\n", ""))
        self.file("a = 1\n[s]")
        self.assertEqual(self.inq("dump", "t.ini"), (0, ".a=1\n", ""))

    def test_long_lines(self):
        for length in (250, 256, 5_000, 300_000):
            with self.subTest(length):
                self.assertEqual(self.value("key = " + "x" * length), "x" * length)

    def test_long_comment(self):
        self.file("# " + "a = 1 " * 2_000 + "\nb = 2\n")
        self.assertEqual(self.inq("dump", "t.ini"), (0, ".b=2\n", ""))

    def test_line_numbers(self):
        self.assertEqual(self.refusal("\n\n# x\n\nbad\n"), "t.ini:5: expected key = value\n")
        self.assertEqual(self.refusal("\r\na=1\r\n\r\nbad\r\n"), "t.ini:4: expected key = value\n")

    def test_line_number_after_a_long_line(self):
        content = "a = " + "x" * 3_000 + "\nbad\n"
        self.assertEqual(self.refusal(content), "t.ini:2: expected key = value\n")


class Repeats(Inq):
    """Several equal keys."""

    def setUp(self):
        super().setUp()
        self.file("[s]\na = 1\nb = 2\n[t]\na = 3\n[s]\na = 4\na = 5\n")

    def test_last_wins(self):
        self.assertEqual(self.inq("get", "t.ini", "s", "a"), (0, "5\n", ""))
        self.assertEqual(self.inq("get", "t.ini", "t", "a"), (0, "3\n", ""))

    def test_dump_shows_each_once(self):
        self.assertEqual(self.inq("dump", "t.ini"), (0, "s.a=5\ns.b=2\nt.a=3\n", ""))


class Readme(unittest.TestCase):
    """The documentation."""

    def test_speaks_of_quotes(self):
        self.assertRegex((APP / "README.md").read_text(), "(?i)quot")
