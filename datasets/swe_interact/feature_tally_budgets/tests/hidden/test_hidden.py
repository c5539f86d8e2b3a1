"""What the user asked for, tried through the command line only."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

APP = os.environ["APP"]

# `python3 -m tally`, over and over, without starting Python each time: a process that has loaded
# what tally takes from the standard library, and forks for every command.
SERVER = """
import argparse, dataclasses, datetime, json, os, re, runpy, sys
sys.path.insert(0, os.environ["APP"])
for line in sys.stdin:
    command = json.loads(line)
    if os.fork() == 0:
        os.chdir(command["cwd"])
        os.environ.clear()
        os.environ.update(command["env"])
        for name, number in (("out", 1), ("err", 2)):
            target = os.open(command[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            os.dup2(target, number)
        sys.argv = ["tally", *command["words"]]
        runpy.run_module("tally", run_name="__main__", alter_sys=True)
        sys.exit(0)
    print(os.waitstatus_to_exitcode(os.wait()[1]), flush=True)
"""


def setUpModule():
    """Start the process that forks."""
    global server
    server = subprocess.Popen(
        [sys.executable, "-B", "-c", SERVER],
        cwd="/",  # not where a json.py may lie around
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def tearDownModule():
    """Let it end."""
    server.communicate()


class Tally(unittest.TestCase):
    """A ledger in a folder of its own, and a fixed today."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name) / "money"
        self.elsewhere = Path(folder.name) / "elsewhere"
        self.folder.mkdir()
        self.elsewhere.mkdir()
        self.file = self.folder / "tally.txt"

    def run_tally(self, *words, today="2026-01-20", cwd=None, file=None):
        out, err = (Path(self.elsewhere.parent) / name for name in ("out", "err"))
        command = {
            "words": ["--file", str(file or self.file), *words],
            "cwd": str(cwd or self.elsewhere),
            "env": {"PATH": os.environ["PATH"], "TALLY_TODAY": today},
            "out": str(out),
            "err": str(err),
        }
        server.stdin.write(json.dumps(command) + "\n")
        server.stdin.flush()
        return int(server.stdout.readline()), out.read_text(), err.read_text()

    def tally(self, *words, **more):
        status, out, err = self.run_tally(*words, **more)
        self.assertEqual((status, err), (0, ""), words)
        return out

    def ledger(self, *lines):
        self.file.write_text("".join(line + "\n" for line in lines))

    def budgets(self):
        return json.loads((self.folder / "budgets.json").read_text())


class Existing(Tally):
    """What worked before and must go on working."""

    def test_add_list_sum(self):
        self.tally("add", "12.5", "Groceries", "bread")
        self.tally("add", "--date", "2026-01-02", "-3", "bus")
        self.assertEqual(
            self.tally("list"), "2026-01-20 12.50 Groceries bread\n2026-01-02 -3.00 bus\n"
        )
        self.assertEqual(self.tally("sum"), "Groceries 12.50\nbus -3.00\n")

    def test_bad_amount(self):
        self.assertEqual(self.run_tally("add", "1,5", "x"), (2, "", "invalid amount: 1,5\n"))
        self.assertFalse(self.file.exists())

    def test_zero_expense_is_allowed(self):
        self.tally("add", "0", "x")
        self.assertEqual(self.tally("list"), "2026-01-20 0.00 x\n")


class Budgets(Tally):
    """set, list, rm."""

    def test_stored_beside_the_ledger(self):
        self.tally("budget", "set", "groceries", "300")
        self.tally("budget", "set", "bus", "49.5")
        self.tally("budget", "set", "bus", "50")
        self.assertEqual(self.budgets(), {"groceries": 30000, "bus": 5000})
        self.assertEqual(list(self.elsewhere.iterdir()), [])

    def test_ledger_in_the_current_folder(self):
        self.tally("budget", "set", "bus", "1", cwd=self.folder, file="tally.txt")
        self.assertEqual(self.budgets(), {"bus": 100})

    def test_list(self):
        for category, amount in (("rent", "900"), ("bus", "49.5"), ("groceries", "300")):
            self.tally("budget", "set", category, amount)
        self.assertEqual(self.tally("budget", "list"), "bus 49.50\ngroceries 300.00\nrent 900.00\n")

    def test_list_of_none(self):
        self.assertEqual(self.tally("budget", "list"), "no budgets\n")
        self.tally("budget", "set", "bus", "1")
        self.tally("budget", "rm", "bus")
        self.assertEqual(self.tally("budget", "list"), "no budgets\n")

    def test_rm(self):
        self.tally("budget", "set", "bus", "1")
        self.tally("budget", "set", "rent", "2")
        self.tally("budget", "rm", "bus")
        self.assertEqual(self.budgets(), {"rent": 200})
        self.assertEqual(self.run_tally("budget", "rm", "bus"), (1, "", "no budget for bus\n"))

    def test_refuses_bad_amounts(self):
        for amount in ("0", "0.00", "-5", "1.234", "ten"):
            with self.subTest(amount):
                refused = self.run_tally("budget", "set", "bus", amount)
                self.assertEqual(refused, (2, "", f"invalid amount: {amount}\n"))
                self.assertEqual(list(self.folder.iterdir()), [])

    def test_refusal_keeps_the_old_budget(self):
        self.tally("budget", "set", "bus", "7")
        self.assertEqual(self.run_tally("budget", "set", "bus", "0")[0], 2)
        self.assertEqual(self.budgets(), {"bus": 700})

    def test_case_makes_no_difference(self):
        self.tally("budget", "set", "Groceries", "1")
        self.tally("budget", "set", "GROCERIES", "2")
        self.assertEqual(self.budgets(), {"groceries": 200})
        self.assertEqual(self.tally("budget", "list"), "groceries 2.00\n")
        self.tally("budget", "rm", "gROCERIES")
        self.assertEqual(self.budgets(), {})


class Status(Tally):
    """status, in lines and as JSON."""

    def setUp(self):
        super().setUp()
        (self.folder / "budgets.json").write_text('{"groceries": 30000, "bus": 1000}')

    def test_lines(self):
        self.ledger("2026-01-03 100 groceries", "2026-01-31 20.50 groceries", "2026-01-04 9 rent")
        expected = "bus 0.00/10.00 0%\ngroceries 120.50/300.00 40%\n"
        self.assertEqual(self.tally("status"), expected)

    def test_percent_is_rounded_down(self):
        self.ledger("2026-01-03 9.99 bus", "2026-01-03 1.99 groceries")
        expected = "bus 9.99/10.00 99%\ngroceries 1.99/300.00 0%\n"
        self.assertEqual(self.tally("status"), expected)

    def test_exactly_at_the_budget_is_not_over(self):
        self.ledger("2026-01-03 10 bus")
        self.assertEqual(self.tally("status").splitlines()[0], "bus 10.00/10.00 100%")

    def test_over(self):
        self.ledger("2026-01-03 10.01 bus", "2026-01-03 750 groceries")
        status, out, err = self.run_tally("status")
        expected = "bus 10.01/10.00 100% OVER\ngroceries 750.00/300.00 250% OVER\n"
        self.assertEqual((status, out, err), (3, expected, ""))

    def test_one_over_is_enough(self):
        self.ledger("2026-01-03 10.01 bus")
        self.assertEqual(self.run_tally("status")[0], 3)

    def test_current_month_only(self):
        self.ledger("2025-01-03 5 bus", "2025-12-31 6 bus", "2026-01-01 1 bus", "2026-02-01 7 bus")
        self.assertEqual(self.tally("status").splitlines()[0], "bus 1.00/10.00 10%")
        february = self.tally("status", today="2026-02-28")
        self.assertEqual(february.splitlines()[0], "bus 7.00/10.00 70%")

    def test_another_month(self):
        self.ledger("2025-12-31 6 bus", "2026-01-01 1 bus")
        self.assertEqual(
            self.tally("status", "--month", "2025-12").splitlines()[0], "bus 6.00/10.00 60%"
        )

    def test_not_a_month(self):
        for month in ("2026-13", "2026-00", "2026-1", "january", "2026-01-01"):
            with self.subTest(month):
                refused = self.run_tally("status", "--month", month)
                self.assertEqual(refused, (2, "", f"invalid month: {month}\n"))

    def test_case_of_entries(self):
        self.ledger("2026-01-03 1 BUS", "2026-01-03 2 Bus", "2026-01-03 3 bus")
        self.assertEqual(self.tally("status").splitlines()[0], "bus 6.00/10.00 60%")
        self.assertIn("1.00 BUS", self.tally("list"))

    def test_refunds_are_taken_off(self):
        self.ledger("2026-01-03 12 bus", "2026-01-04 -3.50 bus")
        self.assertEqual(self.tally("status").splitlines()[0], "bus 8.50/10.00 85%")

    def test_never_below_nothing(self):
        self.ledger("2026-01-03 1 bus", "2026-01-04 -3.50 bus")
        self.assertEqual(self.tally("status").splitlines()[0], "bus 0.00/10.00 0%")

    def test_json(self):
        self.ledger("2026-01-03 25 bus", "2026-01-03 -5 groceries")
        status, out, err = self.run_tally("status", "--json")
        bus = {"category": "bus", "spent_cents": 2500, "budget_cents": 1000, "percent": 250}
        groceries = {"category": "groceries", "spent_cents": 0, "budget_cents": 30000, "percent": 0}
        categories = [bus | {"over": True}, groceries | {"over": False}]
        self.assertEqual((status, err), (3, ""))
        self.assertEqual(
            json.loads(out), {"month": "2026-01", "over": True, "categories": categories}
        )

    def test_json_of_another_month(self):
        document = json.loads(self.tally("status", "--month", "2024-02", "--json"))
        self.assertEqual((document["month"], document["over"]), ("2024-02", False))
        self.assertEqual([row["category"] for row in document["categories"]], ["bus", "groceries"])


class Readme(unittest.TestCase):
    """The documentation."""

    def test_section(self):
        lines = (Path(APP) / "README.md").read_text().splitlines()
        self.assertIn("## Budgets", lines)
