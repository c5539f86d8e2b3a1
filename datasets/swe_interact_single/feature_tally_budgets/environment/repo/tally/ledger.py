"""The ledger: one entry per line of a text file."""

import datetime
import os
from dataclasses import dataclass

from tally.money import format_amount, parse_amount


@dataclass(frozen=True)
class Entry:
    """One expense; a negative amount is money that came back."""

    date: datetime.date
    cents: int
    category: str
    text: str = ""

    def line(self):
        """Return the entry as it stands in the file."""
        return f"{self.date} {format_amount(self.cents)} {self.category} {self.text}".rstrip()


def parse_line(line):
    """Return the entry of one line."""
    date, amount, category, *text = line.split(None, 3)
    day = datetime.date.fromisoformat(date)
    return Entry(day, parse_amount(amount), category, text[0].strip() if text else "")


def load(path):
    """Return the entries of a file in its order; a missing file has none."""
    try:
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
    except FileNotFoundError:
        return []
    return [parse_line(line) for line in lines if line.strip() and not line.startswith("#")]


def append(path, entry):
    """Add an entry at the end of a file."""
    with open(path, "a", encoding="utf-8") as file:
        file.write(entry.line() + "\n")


def today():
    """Return today's date, or the one in TALLY_TODAY."""
    fixed = os.environ.get("TALLY_TODAY")
    return datetime.date.fromisoformat(fixed) if fixed else datetime.date.today()
