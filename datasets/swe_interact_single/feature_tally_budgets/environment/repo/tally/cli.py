"""The command line."""

import argparse
import datetime
import os
import sys

from tally import ledger
from tally.money import format_amount, parse_amount


def add(args):
    date = datetime.date.fromisoformat(args.date) if args.date else ledger.today()
    entry = ledger.Entry(date, parse_amount(args.amount), args.category, args.text)
    ledger.append(args.file, entry)
    return 0


def show(args):
    for entry in ledger.load(args.file):
        print(entry.line())
    return 0


def total(args):
    sums = {}
    for entry in ledger.load(args.file):
        sums[entry.category] = sums.get(entry.category, 0) + entry.cents
    for category in sorted(sums):
        print(f"{category} {format_amount(sums[category])}")
    return 0


def build_parser():
    parser = argparse.ArgumentParser(prog="tally", description="Keep track of what you spend.")
    parser.add_argument("--file", default=os.environ.get("TALLY_FILE", "tally.txt"))
    commands = parser.add_subparsers(dest="command", required=True)

    command = commands.add_parser("add", help="add an expense")
    command.add_argument("--date", help="YYYY-MM-DD, else today")
    command.add_argument("amount")
    command.add_argument("category")
    command.add_argument("text", nargs="?", default="")
    command.set_defaults(run=add)

    command = commands.add_parser("list", help="show all expenses")
    command.set_defaults(run=show)

    command = commands.add_parser("sum", help="add up each category")
    command.set_defaults(run=total)
    return parser


def main(argv=None):
    args = build_parser().parse_args(argv)
    try:
        return args.run(args)
    except ValueError as problem:
        print(problem, file=sys.stderr)
        return 2
