"""What the user asked for: many expressions in one process, and the command line."""

import contextlib
import json
import os
import resource
import subprocess
import unittest
from pathlib import Path

APP = Path(os.environ["APP"])
MONDAY = "2026-01-05T09:00:00Z"

# Answers [expression, after, count], one in a line, with the runs or the message of an error.
SERVER = """
const { nextRuns } = require(process.argv[1]);
const lines = require('readline').createInterface({ input: process.stdin });
lines.on('line', (line) => {
  const [expression, after, count] = JSON.parse(line);
  let answer;
  try {
    const runs = nextRuns(expression, new Date(after), count);
    answer = runs.map((run) => run.toISOString().slice(0, 16));
  } catch (problem) {
    answer = problem.message;
  }
  process.stdout.write(JSON.stringify(answer) + '\\n');
});
"""


# CPU time of a process that answers. Nothing that is right comes near it; what hangs ends there.
SECONDS = 1

server = None


def start():
    """Start a process that answers."""
    return subprocess.Popen(
        ["node", "-e", SERVER, str(APP)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={"PATH": os.environ["PATH"]},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS)),
    )


def stop():
    """End the process that answers."""
    global server
    if server is not None:
        server.kill()
        server.stdout.close()
        with contextlib.suppress(OSError):
            server.stdin.close()
        server.wait()
        server = None


def ask(question):
    """Return the answer to a question, or None if a process of its own does not find it in time."""
    global server
    while True:
        fresh = server is None
        server = server or start()
        line = ""
        with contextlib.suppress(OSError):
            server.stdin.write(json.dumps(question) + "\n")
            server.stdin.flush()
            line = server.stdout.readline()
        if line:
            return json.loads(line)
        stop()
        if fresh:
            return None


def tearDownModule():
    """Leave no process behind."""
    stop()


class Runs(unittest.TestCase):
    """Times of expressions."""

    def check(self, *cases):
        """Each case: expression, time after which, what comes out."""
        for expression, after, expected in cases:
            with self.subTest(expression):
                count = len(expected) if isinstance(expected, list) else 1
                answer = ask([expression, after, count])
                self.assertEqual(answer, expected)
            if answer is None:
                break


def days(*names, time="00:00"):
    """Return times on some days of 2026."""
    return [f"2026-{name}T{time}" for name in names]


class StaysRight(Runs):
    """What works on the untouched repository."""

    def test_every_day(self):
        self.check(("30 6 * * *", MONDAY, days("01-06", "01-07", time="06:30")))

    def test_lists_and_ranges(self):
        self.check(
            ("0,30 9 * * *", "2026-01-05T08:59:00Z", ["2026-01-05T09:00", "2026-01-05T09:30"]),
            ("0 9-11 * * *", "2026-01-05T08:30:00Z",
             ["2026-01-05T09:00", "2026-01-05T10:00", "2026-01-05T11:00", "2026-01-06T09:00"]),
        )  # fmt: skip

    def test_steps_of_everything(self):
        self.check(("*/20 * * * *", "2026-01-05T09:07:00Z", ["2026-01-05T09:20", "2026-01-05T09:40"]))

    def test_weekday_alone(self):
        self.check(("0 0 * * 3", MONDAY, days("01-07", "01-14")))

    def test_day_alone(self):
        self.check(("0 0 31 * *", MONDAY, days("01-31", "03-31", "05-31")))

    def test_messages(self):
        self.check(
            ("61 * * * *", MONDAY, "bad minute: 61"),
            ("* 24 * * *", MONDAY, "bad hour: 24"),
            ("* * 0 * *", MONDAY, "bad day: 0"),
            ("* * * 13 *", MONDAY, "bad month: 13"),
            ("* * * * 8", MONDAY, "bad weekday: 8"),
            ("* * *", MONDAY, "expected 5 fields, got 3"),
        )


class Months(Runs):
    """The month field."""

    def test_month(self):
        self.check(("0 3 1 3 *", MONDAY, ["2026-03-01T03:00", "2027-03-01T03:00"]))

    def test_december(self):
        self.check(("0 0 25 12 *", MONDAY, days("12-25")), ("0 0 1 1 *", MONDAY, ["2027-01-01T00:00"]))

    def test_range(self):
        self.check(("0 0 1 4-6 *", MONDAY, [*days("04-01", "05-01", "06-01"), "2027-04-01T00:00"]))


class After(Runs):
    """Later than the given time."""

    def test_at_a_run(self):
        self.check(("*/15 * * * *", "2026-01-05T09:15:00Z", ["2026-01-05T09:30"]))

    def test_within_a_minute(self):
        self.check(
            ("*/15 * * * *", "2026-01-05T09:14:30Z", ["2026-01-05T09:15"]),
            ("*/15 * * * *", "2026-01-05T09:15:00.001Z", ["2026-01-05T09:30"]),
        )

    def test_every_minute(self):
        self.check(("* * * * *", MONDAY, [f"2026-01-05T09:0{n}" for n in (1, 2, 3)]))


class Steps(Runs):
    """Steps."""

    def test_of_a_range(self):
        expected = [f"2026-01-05T09:{n}" for n in (10, 25, 40)]
        self.check(("10-40/15 * * * *", MONDAY, [*expected, "2026-01-05T10:10"]))

    def test_of_all_days(self):
        self.check(("0 0 */10 * *", MONDAY, days("01-11", "01-21", "01-31", "02-01")))

    def test_of_all_months(self):
        self.check(("0 0 1 */5 *", MONDAY, [*days("06-01", "11-01"), "2027-01-01T00:00"]))

    def test_open_end(self):
        expected = [f"2026-01-05T09:{n:02}" for n in (5, 25, 45)]
        self.check(("5/20 * * * *", MONDAY, [*expected, "2026-01-05T10:05"]))

    def test_open_end_of_other_fields(self):
        self.check(
            ("0 20/2 * * *", MONDAY, ["2026-01-05T20:00", "2026-01-05T22:00", "2026-01-06T20:00"]),
            ("0 0 1 11/1 *", MONDAY, days("11-01", "12-01")),
        )

    def test_in_a_list(self):
        expected = [f"2026-01-05T09:{n:02}" for n in (3, 10, 20, 30)]
        self.check(("3,10-30/10 * * * *", MONDAY, expected))


class Days(Runs):
    """The two day fields."""

    def test_either(self):
        self.check(("0 0 13 * 5", MONDAY, days("01-09", "01-13", "01-16", "01-23")))

    def test_star_does_not_restrict(self):
        self.check(
            ("0 0 */10 * 1", MONDAY, days("05-11", "06-01")),
            ("0 0 1 * */2", MONDAY, days("02-01", "03-01", "08-01")),
        )

    def test_a_full_range_restricts(self):
        self.check(("0 0 1-31 * 1", MONDAY, days("01-06", "01-07")))

    def test_within_a_month(self):
        self.check(("0 0 13 2 5", MONDAY, days("02-06", "02-13", "02-20", "02-27")))


class Names(Runs):
    """Sundays and names."""

    def test_seven(self):
        self.check(("0 0 * * 7", MONDAY, days("01-11", "01-18")), ("0 0 * * 0", MONDAY, days("01-11")))

    def test_seven_in_ranges(self):
        self.check(
            ("0 0 * * 5-7", MONDAY, days("01-09", "01-10", "01-11", "01-16")),
            ("0 0 * * 0-7", MONDAY, days("01-06", "01-07")),
        )

    def test_months(self):
        self.check(("0 0 1 feb,OCT-Dec *", MONDAY, days("02-01", "10-01", "11-01", "12-01")))

    def test_weekdays(self):
        self.check(
            ("0 0 * * MON-FRI", "2026-01-08T09:00:00Z", days("01-09", "01-12")),
            ("0 0 * * sun", MONDAY, days("01-11")),
            ("0 0 * * mon/2", MONDAY, days("01-07", "01-09")),
        )

    def test_names_only_where_they_belong(self):
        self.check(
            ("0 0 jan * *", MONDAY, "bad day: jan"),
            ("0 0 * mon *", MONDAY, "bad month: mon"),
            ("0 0 * * monday", MONDAY, "bad weekday: monday"),
        )


class Never(Runs):
    """What runs seldom or never."""

    def test_never(self):
        self.check(
            ("0 0 30 2 *", MONDAY, "never runs"),
            ("0 0 31 4,6,9,11 *", MONDAY, "never runs"),
        )

    def test_leap_years(self):
        self.check(
            ("0 0 29 2 *", MONDAY, ["2028-02-29T00:00", "2032-02-29T00:00"]),
            ("59 23 29 2 *", "2096-03-01T00:00:00Z", ["2104-02-29T23:59"]),
        )

    def test_leap_day_or_weekday(self):
        self.check(("0 0 30 2 1", MONDAY, days("02-02", "02-09")))


class Nonsense(Runs):
    """What is refused."""

    def test_minutes(self):
        for_minutes = ("5x", "x", "1.5", "-5", "5-", "1-2-3", "*/0", "*/", "*/x", "1/2/3", "5,", ",5",
                       "1,,2", "*-5", "30-10", "0x10", "1e1", "60", "50-70", "+5", "**")  # fmt: skip
        self.check(*((f"{text} * * * *", MONDAY, f"bad minute: {text}") for text in for_minutes))

    def test_other_fields(self):
        self.check(
            ("* 9-17-18 * * *", MONDAY, "bad hour: 9-17-18"),
            ("* * 1,x * *", MONDAY, "bad day: 1,x"),
            ("* * * dec-jan *", MONDAY, "bad month: dec-jan"),
            ("* * * * fri-mon", MONDAY, "bad weekday: fri-mon"),
        )

    def test_blanks(self):
        run = ["2026-01-05T09:30"]
        self.check(
            ("  30  9 * *   * ", MONDAY, run),
            ("30\t9\t*\t \t*\t*", MONDAY, run),
            ("  * *  * ", MONDAY, "expected 5 fields, got 3"),
        )


class CommandLine(unittest.TestCase):
    """bin/nextrun.js."""

    def nextrun(self, *words):
        done = subprocess.run(
            ["node", APP / "bin/nextrun.js", *words],
            env={"PATH": os.environ["PATH"]},
            capture_output=True,
            text=True,
            timeout=20,
        )
        return done.returncode, done.stdout, done.stderr

    def test_prints_runs(self):
        got = self.nextrun("--after", MONDAY, "0 12 * * *", "--count", "2")
        self.assertEqual(got, (0, "2026-01-05T12:00Z\n2026-01-06T12:00Z\n", ""))

    def test_error(self):
        self.assertEqual(self.nextrun("99 * * * *"), (2, "", "nextrun: bad minute: 99\n"))

    def test_usage(self):
        usage = "usage: nextrun EXPRESSION [--after TIME] [--count N]\n"
        self.assertEqual(self.nextrun(), (2, "", usage))

    def test_nothing_follows(self):
        for words in (("* * * * *", "--after"), ("* * * * *", "--count")):
            status, out, err = self.nextrun(*words)
            self.assertEqual((status, out, err[:6]), (2, "", "usage:"))

    def test_bad_time(self):
        got = self.nextrun("* * * * *", "--after", "tomorrow")
        self.assertEqual(got, (2, "", "nextrun: bad time: tomorrow\n"))

    def test_bad_count(self):
        for bad in ("0", "1.5", "x"):
            with self.subTest(bad):
                got = self.nextrun("* * * * *", "--count", bad)
                self.assertEqual(got, (2, "", f"nextrun: bad count: {bad}\n"))


class Readme(unittest.TestCase):
    """The documentation."""

    def test_days_and_names(self):
        text = (APP / "README.md").read_text()
        self.assertRegex(text, "(?i)either")
        self.assertRegex(text, "(?i)jan")
        self.assertRegex(text, "(?i)mon")
