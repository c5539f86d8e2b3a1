"""The command line."""

import sys

from quay import fees, report

USAGE = """usage: quay bill FILE SHIP
       quay report FILE
"""


def main(words=None):
    """Run a command."""
    words = sys.argv[1:] if words is None else words
    if len(words) == 3 and words[0] == "bill":
        run_bill(words[1], words[2])
    elif len(words) == 2 and words[0] == "report":
        run_report(words[1])
    else:
        sys.stderr.write(USAGE)
        sys.exit(2)


def run_bill(path, ship):
    try:
        text = fees.calc_bill(path, ship)
    except OSError as problem:
        sys.stderr.write(f"quay: {path}: {problem.strerror}\n")
        sys.exit(2)
    except ValueError:
        sys.stderr.write(f"quay: {path}: {fees.LAST_ERROR}\n")
        sys.exit(2)
    except LookupError as problem:
        sys.stderr.write(f"quay: {problem.args[0]}\n")
        sys.exit(1)
    sys.stdout.write(text)


def run_report(path):
    try:
        report.print_report(path)
    except OSError as problem:
        sys.stderr.write(f"quay: {path}: {problem.strerror}\n")
        sys.exit(2)
    except ValueError:
        sys.stderr.write(f"quay: {path}: {fees.LAST_ERROR}\n")
        sys.exit(2)
