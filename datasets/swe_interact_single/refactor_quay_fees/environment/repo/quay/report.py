"""What the harbour earned."""

import csv
import datetime

from quay import fees


def print_report(path):
    """Print the visits and the money of each type of ship."""
    fees.LAST_ERROR = None
    counts = {}
    sums = {}
    with open(path, newline="") as file:
        reader = csv.DictReader(file)
        for row in reader:
            try:
                arrived = datetime.date.fromisoformat(row["arrived"])
            except ValueError:
                fees.LAST_ERROR = f"line {reader.line_num}: bad date: {row['arrived']}"
                raise ValueError(fees.LAST_ERROR)
            try:
                left = datetime.date.fromisoformat(row["left"])
            except ValueError:
                fees.LAST_ERROR = f"line {reader.line_num}: bad date: {row['left']}"
                raise ValueError(fees.LAST_ERROR)
            if left < arrived:
                fees.LAST_ERROR = f"line {reader.line_num}: left before arrived"
                raise ValueError(fees.LAST_ERROR)
            if not row["length"].isdecimal() or int(row["length"]) == 0:
                fees.LAST_ERROR = f"line {reader.line_num}: bad length: {row['length']}"
                raise ValueError(fees.LAST_ERROR)
            length = int(row["length"])
            days = (left - arrived).days or 1
            if row["type"] == "cargo":
                total = length * 45 * days
            elif row["type"] == "ferry":
                total = length * 30 * days
            elif row["type"] == "yacht":
                total = length * 25 * days
            else:
                fees.LAST_ERROR = f"line {reader.line_num}: unknown type: {row['type']}"
                raise ValueError(fees.LAST_ERROR)
            berth = total
            if length > 100:
                total += berth * 20 // 100
            if arrived.month in (11, 12, 1, 2):
                total -= berth * 10 // 100
            for service in row["services"].split(";") if row["services"] else []:
                if service == "power":
                    total += 1500 * days
                elif service == "water":
                    total += 800
                elif service == "pilot":
                    total += 12000
                else:
                    fees.LAST_ERROR = f"line {reader.line_num}: unknown service: {service}"
                    raise ValueError(fees.LAST_ERROR)
            counts[row["type"]] = counts.get(row["type"], 0) + 1
            sums[row["type"]] = sums.get(row["type"], 0) + total
    for kind in sorted(counts):
        what = "visit" if counts[kind] == 1 else "visits"
        print(f"{kind} {counts[kind]} {what} {sums[kind] // 100}.{sums[kind] % 100:02}")
    count = sum(counts.values())
    money = sum(sums.values())
    what = "visit" if count == 1 else "visits"
    print(f"all {count} {what} {money // 100}.{money % 100:02}")
