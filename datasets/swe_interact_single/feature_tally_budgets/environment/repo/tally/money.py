"""Amounts of money, kept as whole cents."""

import re

AMOUNT = re.compile(r"(-?)(\d+)(?:\.(\d{1,2}))?")


def parse_amount(text):
    """Return the cents of `12`, `12.5` or `-12.50`; raise ValueError for anything else."""
    found = AMOUNT.fullmatch(text)
    if not found:
        raise ValueError(f"invalid amount: {text}")
    sign, whole, part = found.groups()
    cents = int(whole) * 100 + int((part or "").ljust(2, "0"))
    return -cents if sign else cents


def format_amount(cents):
    """Return cents as `12.50`."""
    sign = "-" if cents < 0 else ""
    return f"{sign}{abs(cents) // 100}.{abs(cents) % 100:02d}"
