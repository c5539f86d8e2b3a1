import os
import subprocess
import sys
import tempfile
import unittest

VISITS = """ship,type,length,arrived,left,services
Aurora,cargo,82,2026-03-01,2026-03-04,power;pilot
Bell,yacht,12,2026-05-01,2026-05-01,water
"""


class QuayTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "visits.csv")
        with open(self.path, "w") as file:
            file.write(VISITS)

    def quay(self, *words):
        done = subprocess.run([sys.executable, "-m", "quay", *words], capture_output=True, text=True)
        return done.returncode, done.stdout, done.stderr

    def test_bill(self):
        text = """Aurora 2026-03-01 to 2026-03-04, 3 days
  berth 110.70
  power 45.00
  pilot 120.00
  total 275.70
Aurora owes 275.70
"""
        self.assertEqual(self.quay("bill", self.path, "Aurora"), (0, text, ""))

    def test_report(self):
        text = "cargo 1 visit 275.70\nyacht 1 visit 11.00\nall 2 visits 286.70\n"
        self.assertEqual(self.quay("report", self.path), (0, text, ""))

    def test_no_visits(self):
        self.assertEqual(self.quay("bill", self.path, "X"), (1, "", "quay: no visits of X\n"))
