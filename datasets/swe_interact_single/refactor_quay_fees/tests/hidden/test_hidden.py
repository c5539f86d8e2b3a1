"""What the user asked for: the new modules, and that nothing else changed. The rubric has the rest."""

import ast
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

APP = Path(os.environ["APP"])
HEADER = "ship,type,length,arrived,left,services\n"
VISITS = (
    HEADER
    + """Aurora,cargo,82,2026-03-01,2026-03-04,power;pilot
Bell,yacht,12,2026-05-01,2026-05-01,water
Aurora,cargo,82,2026-12-31,2027-01-02,
"Cape, Town",ferry,101,2026-02-28,2026-03-01,pilot;power;water
Dart,yacht,7,2026-11-30,2026-12-01,
Dart,yacht,100,2026-10-31,2026-11-01,power
Enge,cargo,333,2026-01-15,2026-01-15,
"""
)

BILLS = {
    "Aurora": """Aurora 2026-03-01 to 2026-03-04, 3 days
  berth 110.70
  power 45.00
  pilot 120.00
  total 275.70
Aurora 2026-12-31 to 2027-01-02, 2 days
  berth 73.80
  winter -7.38
  total 66.42
Aurora owes 342.12
""",
    "Cape, Town": """Cape, Town 2026-02-28 to 2026-03-01, 1 day
  berth 30.30
  size 6.06
  winter -3.03
  pilot 120.00
  power 15.00
  water 8.00
  total 176.33
Cape, Town owes 176.33
""",
    "Dart": """Dart 2026-11-30 to 2026-12-01, 1 day
  berth 1.75
  winter -0.17
  total 1.58
Dart 2026-10-31 to 2026-11-01, 1 day
  berth 25.00
  power 15.00
  total 40.00
Dart owes 41.58
""",
}
REPORT = """cargo 3 visits 506.96
ferry 1 visit 176.33
yacht 3 visits 52.58
all 7 visits 735.87
"""

BAD = {
    "A,cargo,5,2026-02-30,2026-03-01,": "bad date: 2026-02-30",
    "A,cargo,5,2026-02-20,soon,": "bad date: soon",
    "A,cargo,5,2026-02-20,2026-02-19,": "left before arrived",
    "A,cargo,5.5,2026-02-20,2026-02-21,": "bad length: 5.5",
    "A,cargo,0,2026-02-20,2026-02-21,": "bad length: 0",
    "A,tug,5,2026-02-20,2026-02-21,": "unknown type: tug",
    "A,yacht,5,2026-02-20,2026-02-21,power;tea": "unknown service: tea",
    "A,tug,x,2026-02-20,2026-02-19,tea": "left before arrived",
}


class Quay(unittest.TestCase):
    """A file of visits, the commands, and pieces of Python that use the modules."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.path = self.folder / "visits.csv"
        self.path.write_text(VISITS)

    def python(self, *words):
        done = subprocess.run(
            [sys.executable, "-B", *words],
            cwd=self.folder,
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(APP)},
            capture_output=True,
            text=True,
            timeout=30,
        )
        return done.returncode, done.stdout, done.stderr

    def quay(self, *words):
        return self.python("-m", "quay", *words)

    def value(self, expression, *before):
        """Return what an expression gives after some statements."""
        script = "\n".join(
            ["from quay import fees, money, report, tariff, visits", *before]
            + [f"print(repr({expression}))"]
        )
        status, out, err = self.python("-c", script)
        self.assertEqual(status, 0, err)
        return ast.literal_eval(out)


class SameOutput(Quay):
    """To the byte."""

    maxDiff = None

    def test_bills(self):
        for ship, text in BILLS.items():
            with self.subTest(ship):
                self.assertEqual(self.quay("bill", "visits.csv", ship), (0, text, ""))

    def test_report(self):
        self.assertEqual(self.quay("report", "visits.csv"), (0, REPORT, ""))

    def test_report_of_nothing(self):
        self.path.write_text(HEADER)
        self.assertEqual(self.quay("report", "visits.csv"), (0, "all 0 visits 0.00\n", ""))

    def test_no_visits(self):
        expected = (1, "", "quay: no visits of Zoe\n")
        self.assertEqual(self.quay("bill", "visits.csv", "Zoe"), expected)

    def test_bad_files(self):
        for line, message in BAD.items():
            with self.subTest(line):
                self.path.write_text(f"{HEADER}Z,yacht,5,2026-02-20,2026-02-21,\n{line}\n")
                expected = (2, "", f"quay: visits.csv: line 3: {message}\n")
                self.assertEqual(self.quay("report", "visits.csv"), expected)

    def test_bad_lines_of_other_ships_count(self):
        self.path.write_text(VISITS + "A,tug,5,2026-02-20,2026-02-21,\n")
        expected = (2, "", "quay: visits.csv: line 9: unknown type: tug\n")
        self.assertEqual(self.quay("bill", "visits.csv", "Dart"), expected)

    def test_no_such_file(self):
        for words in (("bill", "no.csv", "A"), ("report", "no.csv")):
            expected = (2, "", "quay: no.csv: No such file or directory\n")
            self.assertEqual(self.quay(*words), expected)

    def test_usage(self):
        usage = "usage: quay bill FILE SHIP\n       quay report FILE\n"
        for words in ((), ("bill", "visits.csv"), ("report",), ("nothing", "visits.csv")):
            self.assertEqual(self.quay(*words), (2, "", usage))

    def test_old_function(self):
        script = (
            "from quay import fees\n"
            "print(fees.calc_bill('visits.csv', 'Dart'), end='')\n"
            "try: fees.calc_bill('visits.csv', 'Zoe')\n"
            "except LookupError as problem: print(problem.args[0])\n"
            f"open('visits.csv', 'w').write({HEADER + next(iter(BAD))!r})\n"
            "try: fees.calc_bill('visits.csv', 'Bell')\n"
            "except ValueError as problem: print(problem)\n"
        )
        expected = BILLS["Dart"] + "no visits of Zoe\nline 2: bad date: 2026-02-30\n"
        self.assertEqual(self.python("-W", "ignore", "-c", script)[:2], (0, expected))


class Modules(Quay):
    """What is where."""

    def test_visits(self):
        got = self.value(
            "[(v.ship, v.kind, v.length, str(v.arrived), str(v.left), v.services, v.days)"
            " for v in visits.load('visits.csv')[1:4]]"
        )
        self.assertEqual(
            got,
            [
                ("Bell", "yacht", 12, "2026-05-01", "2026-05-01", ("water",), 1),
                ("Aurora", "cargo", 82, "2026-12-31", "2027-01-02", (), 2),
                ("Cape, Town", "ferry", 101, "2026-02-28", "2026-03-01",
                 ("pilot", "power", "water"), 1),
            ],
        )  # fmt: skip

    def test_visits_are_frozen(self):
        before = (
            "import dataclasses",
            "visit = visits.load('visits.csv')[0]",
            "try: visit.ship = 'x'",
            "except dataclasses.FrozenInstanceError: frozen = True",
        )
        self.assertTrue(self.value("frozen and isinstance(visit, visits.Visit)", *before))

    def test_errors(self):
        self.path.write_text(f"{HEADER}{next(iter(BAD))}\n")
        before = (
            "try: visits.load('visits.csv')",
            "except visits.VisitError as problem: error = problem",
        )
        got = self.value("(error.line, str(error), isinstance(error, ValueError))", *before)
        self.assertEqual(got, (2, "line 2: bad date: 2026-02-30", True))

    def test_tariff(self):
        got = self.value("(dict(tariff.BERTH_RATES), dict(tariff.SERVICES))")
        rates = {"cargo": 45, "ferry": 30, "yacht": 25}
        services = {"power": (1500, True), "water": (800, False), "pilot": (12000, False)}
        self.assertEqual(got, (rates, services))

    def test_new_type_and_service(self):
        self.path.write_text(f"{HEADER}T,tug,10,2026-05-01,2026-05-03,crane;tea\n")
        before = (
            "tariff.BERTH_RATES['tug'] = 7",
            "tariff.SERVICES['crane'] = (500, True)",
            "tariff.SERVICES['tea'] = (3, False)",
            "loaded = visits.load('visits.csv')",
        )
        got = self.value("(fees.items(loaded[0]), report.report(loaded))", *before)
        items = [("berth", 140), ("crane", 1000), ("tea", 3)]
        self.assertEqual(got, (items, "tug 1 visit 11.43\nall 1 visit 11.43\n"))

    def test_items_and_total(self):
        got = self.value(
            "[(fees.items(v), fees.total(v)) for v in visits.load('visits.csv')[3:5]]"
        )
        cape = [("berth", 3030), ("size", 606), ("winter", -303), ("pilot", 12000),
                ("power", 1500), ("water", 800)]  # fmt: skip
        self.assertEqual(got, [(cape, 17633), ([("berth", 175), ("winter", -17)], 158)])

    def test_bill_and_report_return_text(self):
        got = self.value("(report.bill(v, 'Dart'), report.report(v))", "v = visits.load('visits.csv')")
        self.assertEqual(got, (BILLS["Dart"], REPORT))

    def test_bill_of_a_stranger(self):
        before = ("try: report.bill([], 'Zoe')", "except LookupError as problem: p = problem")
        self.assertEqual(self.value("p.args[0]", *before), "no visits of Zoe")

    def test_money(self):
        cents = [0, 5, 50, 123456, -1, -50, -250]
        got = self.value(f"[money.format_cents(cents) for cents in {cents}]")
        self.assertEqual(got, ["0.00", "0.05", "0.50", "1234.56", "-0.01", "-0.50", "-2.50"])

    def test_nothing_is_cached(self):
        before = (
            "import warnings; warnings.simplefilter('ignore')",
            "first = fees.calc_bill('visits.csv', 'Bell')",
            "text = open('visits.csv').read()",
            "open('visits.csv', 'w').write(text.replace(',12,', ',24,'))",
        )
        got = self.value("(first, fees.calc_bill('visits.csv', 'Bell'))", *before)
        self.assertIn("berth 3.00", got[0])
        self.assertIn("berth 6.00", got[1])

    def test_old_function_warns(self):
        before = (
            "import warnings",
            "with warnings.catch_warnings(record=True) as caught:",
            "    warnings.simplefilter('always')",
            "    fees.calc_bill('visits.csv', 'Bell')",
        )
        got = self.value("[issubclass(w.category, DeprecationWarning) for w in caught]", *before)
        self.assertEqual(got, [True])

    def test_main_returns_the_status(self):
        before = (
            "from quay.cli import main",
            "import contextlib, io",
            "sink = io.StringIO()",
            "calls = [['report', 'visits.csv'], ['bill', 'visits.csv', 'Zoe'], ['report', 'no'], []]",
            "with contextlib.redirect_stdout(sink), contextlib.redirect_stderr(sink):",
            "    got = [main(call) for call in calls]",
        )
        self.assertEqual(self.value("got", *before), [0, 1, 2, 2])


class Readme(unittest.TestCase):
    """The documentation."""

    def test_section(self):
        text = (APP / "README.md").read_text()
        section = text.partition("## How it is built\n")[2].partition("\n## ")[0]
        for name in ("visits", "tariff", "fees", "report", "money", "cli"):
            self.assertIn(name, section)
