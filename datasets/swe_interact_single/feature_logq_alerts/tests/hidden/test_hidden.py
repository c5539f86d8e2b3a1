"""What the user asked for, tried through the command line only."""

import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

APP = Path(os.environ["APP"])

USAGE = "usage: logq count LOG...\n       logq show [--level LEVEL] LOG...\n"


def at(seconds, level="ERROR", service="db", message="no luck"):
    """Return a line of a log, so many seconds after nine."""
    minute, second = divmod(seconds, 60)
    return f"2026-01-05T09:{minute:02}:{second:02}Z {level} {service}: {message}"


class Logq(unittest.TestCase):
    """A folder with logs and rules, and what logq says about them."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def file(self, name, *lines):
        (self.folder / name).write_text("".join(line + "\n" for line in lines))

    def logq(self, *words):
        done = subprocess.run(
            ["perl", APP / "bin/logq", *words],
            cwd=self.folder,
            env={"PATH": os.environ["PATH"]},
            capture_output=True,
            text=True,
            timeout=30,
        )
        return done.returncode, done.stdout, done.stderr

    def alerts(self, rules, lines, *options):
        """Return the lines that rules earn, and check the exit status."""
        self.file("rules", *rules)
        self.file("a.log", *lines)
        status, out, err = self.logq("alerts", *options, "rules", "a.log")
        self.assertEqual((status, err), (1 if out else 0, ""))
        return out.splitlines()


class StaysRight(Logq):
    """What works on the untouched repository."""

    def setUp(self):
        super().setUp()
        self.file("a.log", at(5), "garbage", at(1, "INFO"), at(0, "FATAL"), at(2, "WARN"))

    def test_count(self):
        expected = "DEBUG 0\nINFO 1\nWARN 1\nERROR 1\n"
        self.assertEqual(self.logq("count", "a.log"), (0, expected, ""))

    def test_show_keeps_the_order_of_the_file(self):
        lines = [at(5), at(1, "INFO"), at(2, "WARN")]
        self.assertEqual(self.logq("show", "a.log"), (0, "\n".join(lines) + "\n", ""))
        self.assertEqual(self.logq("show", "--level", "WARN", "a.log"), (0, at(2, "WARN") + "\n", ""))

    def test_no_such_log(self):
        expected = (2, "", "logq: no.log: No such file or directory\n")
        self.assertEqual(self.logq("count", "a.log", "no.log"), expected)

    def test_usage_of_nothing(self):
        status, out, err = self.logq()
        self.assertEqual((status, out), (2, ""))
        self.assertTrue(err.startswith(USAGE), err)


class Alerts(Logq):
    """When rules fire."""

    def test_fires(self):
        got = self.alerts(["db-errors: ERROR 3/60"], [at(1), at(11), at(41)])
        self.assertEqual(got, ["2026-01-05T09:00:41Z db-errors 3 in 40s"])

    def test_not_enough(self):
        self.assertEqual(self.alerts(["a: ERROR 3/60"], [at(1), at(2)]), [])

    def test_exactly_the_time(self):
        got = self.alerts(["a: ERROR 2/60"], [at(1), at(61)])
        self.assertEqual(got, ["2026-01-05T09:01:01Z a 2 in 60s"])

    def test_one_second_too_late(self):
        self.assertEqual(self.alerts(["a: ERROR 2/60"], [at(1), at(62)]), [])

    def test_window_moves(self):
        got = self.alerts(["a: ERROR 3/10"], [at(0), at(8), at(14), at(18)])
        self.assertEqual(got, ["2026-01-05T09:00:18Z a 3 in 10s"])

    def test_one_line_is_enough(self):
        got = self.alerts(["a: WARN 1/0"], [at(3, "WARN"), at(4), at(4, "WARN")])
        self.assertEqual(got, ["2026-01-05T09:00:03Z a 1 in 0s", "2026-01-05T09:00:04Z a 1 in 0s"])

    def test_exactly_that_level(self):
        lines = [at(1, "WARN"), at(2), at(3, "WARN"), at(4, "INFO")]
        self.assertEqual(self.alerts(["a: WARN 3/60"], lines), [])
        self.assertEqual(len(self.alerts(["a: WARN 2/60"], lines)), 1)

    def test_starts_from_nothing(self):
        got = self.alerts(["a: ERROR 3/60"], [at(second) for second in range(8)])
        self.assertEqual(got, ["2026-01-05T09:00:02Z a 3 in 2s", "2026-01-05T09:00:05Z a 3 in 2s"])

    def test_rules_do_not_disturb_each_other(self):
        got = self.alerts(["a: ERROR 2/60", "b: ERROR 3/60"], [at(second) for second in range(3)])
        self.assertEqual(got, ["2026-01-05T09:00:01Z a 2 in 1s", "2026-01-05T09:00:02Z b 3 in 2s"])

    def test_order_of_rules_on_one_line(self):
        got = self.alerts(["z: ERROR 1/1", "a: ERROR 1/1"], [at(0)])
        self.assertEqual([line.split()[1] for line in got], ["z", "a"])

    def test_over_midnight(self):
        lines = ["2026-02-28T23:59:50Z ERROR a: x", "2026-03-01T00:00:10Z ERROR a: x"]
        self.assertEqual(self.alerts(["a: ERROR 2/60"], lines), ["2026-03-01T00:00:10Z a 2 in 20s"])


class Conditions(Logq):
    """service= and match=."""

    LINES = (
        at(1, service="db", message="lost a/b c"),
        at(2, service="web", message="lost a/b c"),
        at(3, service="db", message="found"),
    )

    def fired(self, condition):
        got = self.alerts([f"a: ERROR 1/1 {condition}"], self.LINES)
        return [line.split()[0][-3:-1] for line in got]

    def test_service(self):
        self.assertEqual(self.fired("service=db"), ["01", "03"])
        self.assertEqual(self.fired("service=d"), [])

    def test_match(self):
        self.assertEqual(self.fired("match=/^lost/"), ["01", "02"])
        self.assertEqual(self.fired("match=/db|web/"), [])

    def test_pattern_with_blanks_and_slashes(self):
        self.assertEqual(self.fired("match=/a/b c/"), ["01", "02"])

    def test_both(self):
        self.assertEqual(self.fired("service=web match=/lost/"), ["02"])


class Rules(Logq):
    """The file of rules."""

    def test_comments_and_empty_lines(self):
        rules = ["# mine", "", "   # more", "  ", "a: ERROR 1/1"]
        self.assertEqual(len(self.alerts(rules, [at(0)])), 1)

    def test_bad_rules(self):
        self.file("a.log", at(0))
        for bad in (
            "nonsense",
            "a: FATAL 1/1",
            "a: ERROR 0/10",
            "a: ERROR 3",
            "a b: ERROR 1/1",
            "a: ERROR 1/1 match=/(/",
            "a: ERROR 1/1 service=",
            "a: ERROR 1/1 colour=red",
            "a: ERROR 1/1 match=/x",
            "a: ERROR 1/1 match=/x/ service=db",
            ": ERROR 1/1",
        ):
            with self.subTest(bad):
                self.file("rules", "a: ERROR 1/1", "", "# x", bad)
                got = self.logq("alerts", "rules", "a.log")
                self.assertEqual(got, (2, "", "logq: rules:4: bad rule\n"))

    def test_no_such_rules(self):
        self.file("a.log", at(0))
        expected = (2, "", "logq: rules: No such file or directory\n")
        self.assertEqual(self.logq("alerts", "rules", "a.log"), expected)


class Logs(Logq):
    """Several files, disorder and garbage."""

    def test_several_files_by_time(self):
        self.file("rules", "a: ERROR 2/5", "b: WARN 1/0")
        self.file("a.log", at(1), at(30), at(33, "WARN"))
        self.file("b.log", at(3), at(10, "WARN"), at(34))
        status, out, err = self.logq("alerts", "rules", "a.log", "b.log")
        expected = [
            "2026-01-05T09:00:03Z a 2 in 2s",
            "2026-01-05T09:00:10Z b 1 in 0s",
            "2026-01-05T09:00:33Z b 1 in 0s",
            "2026-01-05T09:00:34Z a 2 in 4s",
        ]
        self.assertEqual((status, out.splitlines(), err), (1, expected, ""))

    def test_disorder_in_one_file(self):
        got = self.alerts(["a: ERROR 2/5"], [at(50), at(1), at(52)])
        self.assertEqual(got, ["2026-01-05T09:00:52Z a 2 in 2s"])

    def test_skipped(self):
        self.file("rules", "a: ERROR 1/1")
        self.file("a.log", "garbage", at(0))
        self.file("b.log", "", "2026-13-05T09:00:00Z ERROR db: no such month")
        status, _, err = self.logq("alerts", "rules", "a.log")
        self.assertEqual((status, err), (1, "skipped 1 line\n"))
        status, out, err = self.logq("alerts", "rules", "b.log")
        self.assertEqual((status, out, err), (0, "", "skipped 2 lines\n"))
        self.assertEqual(self.logq("alerts", "rules", "a.log", "b.log")[2], "skipped 3 lines\n")

    def test_no_such_log_prints_nothing(self):
        self.file("rules", "a: ERROR 1/1")
        self.file("a.log", at(0))
        got = self.logq("alerts", "rules", "a.log", "no.log")
        self.assertEqual(got, (2, "", "logq: no.log: No such file or directory\n"))


class Options(Logq):
    """--since, --json and the usage text."""

    LINES = (at(1), at(2), at(3))

    def test_since(self):
        got = self.alerts(["a: ERROR 2/60"], self.LINES, "--since", "2026-01-05T09:00:02Z")
        self.assertEqual(got, ["2026-01-05T09:00:03Z a 2 in 1s"])

    def test_not_a_time(self):
        self.file("rules", "a: ERROR 1/1")
        self.file("a.log", at(0))
        for bad in ("09:00", "2026-02-30T00:00:00Z", "2026-01-05"):
            with self.subTest(bad):
                got = self.logq("alerts", "--since", bad, "rules", "a.log")
                self.assertEqual(got, (2, "", f"logq: invalid time: {bad}\n"))

    def test_json(self):
        got = self.alerts(["a-1: ERROR 3/60"], [*self.LINES, *self.LINES], "--json")
        alerts = [json.loads(line) for line in got]
        first, second = ("2026-01-05T09:00:02Z", 1), ("2026-01-05T09:00:03Z", 1)
        self.assertEqual(
            alerts,
            [
                {"time": time, "rule": "a-1", "count": 3, "seconds": seconds}
                for time, seconds in (first, second)
            ],
        )

    def test_json_and_since_in_any_order(self):
        since = ("--since", "2026-01-05T09:00:03Z")
        for options in (("--json", *since), (*since, "--json")):
            with self.subTest(options):
                got = self.alerts(["a: ERROR 1/1"], self.LINES, *options)
                self.assertEqual([json.loads(line)["time"] for line in got], [since[1]])

    def test_usage(self):
        self.file("rules", "a: ERROR 1/1")
        for words in (("alerts",), ("alerts", "rules"), ("alerts", "--json", "rules"), ("nothing",)):
            with self.subTest(words):
                status, out, err = self.logq(*words)
                self.assertEqual((status, out), (2, ""))
                self.assertTrue(err.startswith(USAGE), err)
                self.assertIn("       logq alerts ", err)


class Readme(unittest.TestCase):
    """The documentation."""

    def test_section(self):
        self.assertRegex((APP / "README.md").read_text(), r"(?m)^## Alerts$")
