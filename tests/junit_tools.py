"""Reading junit files in tests: as plain rows, and whether they hold together."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree as ET

ENDINGS = ("error", "failure", "skipped")


@dataclass(frozen=True)
class Case:
    classname: str
    name: str
    ending: str | None
    kind: str | None
    message: str
    text: str
    time: float
    properties: dict[str, str] = field(default_factory=dict)
    out: str = ""
    attributes: dict[str, str] = field(default_factory=dict)


def cases(xml: Path) -> list[Case]:
    """Every testcase of a file that a strict reader accepts."""
    root = ET.fromstring(xml.read_bytes())
    check(root)
    return [_case(each) for each in root.iter("testcase")]


def suite(xml: Path) -> ET.Element:
    found = ET.fromstring(xml.read_bytes()).find("testsuite")
    assert found is not None
    return found


def suite_properties(xml: Path) -> dict[str, str]:
    return {
        each.attrib["name"]: each.attrib["value"]
        for each in suite(xml).iterfind("properties/property")
    }


def check(root: ET.Element) -> None:
    """What JUnit schemas ask, and what dashboards silently get wrong otherwise."""
    assert root.tag == "testsuites"
    for each in root:
        assert each.tag == "testsuite"
        rows = each.findall("testcase")
        tags = [_endings(row)[0].tag if _endings(row) else "" for row in rows]
        assert each.get("tests") == str(len(rows))
        assert each.get("errors") == str(tags.count("error"))
        assert each.get("failures") == str(tags.count("failure"))
        assert each.get("skipped") == str(tags.count("skipped"))
        names = [(row.get("classname"), row.get("name")) for row in rows]
        assert len(set(names)) == len(names), "two testcases of one name"
        for row in rows:
            _check_row(row)
        assert len(each.findall("properties")) <= 1


def _check_row(row: ET.Element) -> None:
    assert row.get("name")
    assert row.get("classname") is not None
    assert float(row.attrib["time"]) >= 0
    assert len(_endings(row)) <= 1, "one ending per testcase"
    order = ["properties", *ENDINGS, "system-out", "system-err"]
    tags = [child.tag for child in row]
    assert tags == sorted(tags, key=order.index)
    assert len(set(tags)) == len(tags)
    for ending in _endings(row):
        assert ending.get("message")
    names = [each.attrib["name"] for each in row.iterfind("properties/property")]
    assert len(set(names)) == len(names), "a property stands there twice"


def _endings(row: ET.Element) -> list[ET.Element]:
    return [child for child in row if child.tag in ENDINGS]


def _case(row: ET.Element) -> Case:
    ending = next(iter(_endings(row)), None)
    return Case(
        classname=row.attrib["classname"],
        name=row.attrib["name"],
        ending=None if ending is None else ending.tag,
        kind=None if ending is None else ending.get("type"),
        message="" if ending is None else ending.get("message", ""),
        text="" if ending is None else ending.text or "",
        time=float(row.attrib["time"]),
        properties={
            each.attrib["name"]: each.attrib["value"]
            for each in row.iterfind("properties/property")
        },
        out=row.findtext("system-out") or "",
        attributes=dict(row.attrib),
    )
