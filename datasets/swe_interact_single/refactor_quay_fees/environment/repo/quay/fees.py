"""The bill of a ship."""

import csv
import datetime

# Bills that were made already.
CACHE = {}

# What was wrong with the last file.
LAST_ERROR = None


def calc_bill(path, ship):
    """Return the bill of a ship as text. ValueError: see LAST_ERROR. LookupError: no visits."""
    global LAST_ERROR
    if (path, ship) in CACHE:
        return CACHE[(path, ship)]
    LAST_ERROR = None
    out = ""
    owed = 0
    found = False
    with open(path, newline="") as file:
        reader = csv.DictReader(file)
        for row in reader:
            try:
                arrived = datetime.date.fromisoformat(row["arrived"])
            except ValueError:
                LAST_ERROR = f"line {reader.line_num}: bad date: {row['arrived']}"
                raise ValueError(LAST_ERROR)
            try:
                left = datetime.date.fromisoformat(row["left"])
            except ValueError:
                LAST_ERROR = f"line {reader.line_num}: bad date: {row['left']}"
                raise ValueError(LAST_ERROR)
            if left < arrived:
                LAST_ERROR = f"line {reader.line_num}: left before arrived"
                raise ValueError(LAST_ERROR)
            if not row["length"].isdecimal() or int(row["length"]) == 0:
                LAST_ERROR = f"line {reader.line_num}: bad length: {row['length']}"
                raise ValueError(LAST_ERROR)
            length = int(row["length"])
            if row["type"] not in ("cargo", "ferry", "yacht"):
                LAST_ERROR = f"line {reader.line_num}: unknown type: {row['type']}"
                raise ValueError(LAST_ERROR)
            services = row["services"].split(";") if row["services"] else []
            for service in services:
                if service not in ("power", "water", "pilot"):
                    LAST_ERROR = f"line {reader.line_num}: unknown service: {service}"
                    raise ValueError(LAST_ERROR)
            if row["ship"] != ship:
                continue
            found = True
            days = (left - arrived).days
            if days == 0:
                days = 1
            if row["type"] == "cargo":
                berth = length * 45 * days
            elif row["type"] == "ferry":
                berth = length * 30 * days
            else:
                berth = length * 25 * days
            total = berth
            out += f"{ship} {arrived} to {left}, {days} {'day' if days == 1 else 'days'}\n"
            out += f"  berth {berth // 100}.{berth % 100:02}\n"
            if length > 100:
                size = berth * 20 // 100
                total += size
                out += f"  size {size // 100}.{size % 100:02}\n"
            if arrived.month in (11, 12, 1, 2):
                winter = berth * 10 // 100
                total -= winter
                out += f"  winter -{winter // 100}.{winter % 100:02}\n"
            for service in services:
                if service == "power":
                    price = 1500 * days
                elif service == "water":
                    price = 800
                else:
                    price = 12000
                total += price
                out += f"  {service} {price // 100}.{price % 100:02}\n"
            out += f"  total {total // 100}.{total % 100:02}\n"
            owed += total
    if not found:
        raise LookupError(f"no visits of {ship}")
    out += f"{ship} owes {owed // 100}.{owed % 100:02}\n"
    CACHE[(path, ship)] = out
    return out
