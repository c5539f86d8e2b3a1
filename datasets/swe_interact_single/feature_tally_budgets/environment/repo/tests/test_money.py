import unittest

from tally.money import format_amount, parse_amount


class MoneyTest(unittest.TestCase):
    def test_round_trip(self):
        for text, cents in (("12", 1200), ("12.5", 1250), ("-0.05", -5), ("0", 0)):
            self.assertEqual(parse_amount(text), cents)
        self.assertEqual(format_amount(-5), "-0.05")

    def test_refuses(self):
        for text in ("", "1.234", "1e3", "+1", "1."):
            with self.assertRaises(ValueError):
                parse_amount(text)
