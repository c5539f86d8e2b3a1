import contextlib
import io
import os
import tempfile
import unittest
from unittest import mock

from tally.cli import main


class CliTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = os.path.join(folder.name, "tally.txt")
        clock = mock.patch.dict(os.environ, {"TALLY_TODAY": "2026-01-20"})
        clock.start()
        self.addCleanup(clock.stop)

    def tally(self, *words):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = main(["--file", self.file, *words])
        return status, out.getvalue(), err.getvalue()

    def test_add_and_list(self):
        self.tally("add", "12.5", "groceries", "bread")
        self.tally("add", "--date", "2026-01-02", "3", "bus")
        status, out, _ = self.tally("list")
        self.assertEqual(status, 0)
        self.assertEqual(out, "2026-01-20 12.50 groceries bread\n2026-01-02 3.00 bus\n")

    def test_sum(self):
        for amount, category in (("1.10", "b"), ("2", "a"), ("0.05", "b")):
            self.tally("add", amount, category)
        self.assertEqual(self.tally("sum")[1], "a 2.00\nb 1.15\n")

    def test_invalid_amount(self):
        status, _, err = self.tally("add", "1,50", "bus")
        self.assertEqual(status, 2)
        self.assertEqual(err, "invalid amount: 1,50\n")
        self.assertFalse(os.path.exists(self.file))
