"""Reading an HTML report in tests: its elements, its packed data, its text."""

from __future__ import annotations

import base64
import gzip
import json
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

VOID = {"meta", "input", "br", "img", "link"}


@dataclass
class Element:
    tag: str
    attributes: dict[str, str]
    children: list[Element | str] = field(default_factory=list)

    def all(self, tag: str, **wanted: str) -> list[Element]:
        """Every element below with this tag and these attributes (``class_`` for one class)."""
        found = []
        for child in self.children:
            if isinstance(child, Element):
                if child.matches(tag, wanted):
                    found.append(child)
                found += child.all(tag, **wanted)
        return found

    def matches(self, tag: str, wanted: dict[str, str]) -> bool:
        if tag not in ("*", self.tag):
            return False
        classes = self.attributes.get("class", "").split()
        return all(
            value in classes if name == "class_" else self.attributes.get(name) == value
            for name, value in wanted.items()
        )

    @property
    def text(self) -> str:
        """Its text, that of scripts and styles excepted."""
        parts = [
            each if isinstance(each, str) else each.text
            for each in self.children
            if isinstance(each, str) or each.tag not in ("script", "style")
        ]
        return " ".join(" ".join(parts).split())


class _Builder(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("root", {})
        self._open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs})
        self._open[-1].children.append(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self._open[-1].tag == tag, f"</{tag}> closes <{self._open[-1].tag}>"
        self._open.pop()

    def handle_data(self, data: str) -> None:
        self._open[-1].children.append(data)


def read_page(page: Path) -> Element:
    """The page as a tree; tags that do not match are an error."""
    builder = _Builder()
    builder.feed(page.read_text(encoding="utf-8"))
    builder.close()
    assert len(builder._open) == 1, f"<{builder._open[-1].tag}> is never closed"
    return builder.root


def unpack(script: Element) -> Any:
    """What lies packed in a script element."""
    [text] = script.children
    assert isinstance(text, str)
    return json.loads(gzip.decompress(base64.b64decode(text)))


def packed(element: Element) -> list[Any]:
    """All packed data below an element, in order."""
    return [unpack(each) for each in element.all("script", type="application/octet-stream")]


def episodes(root: Element) -> list[Element]:
    return root.all("details", class_="episode")


def everything(page: Path) -> str:
    """All that anybody can find in a page, packed or not."""
    root = read_page(page)
    data = json.dumps(packed(root), ensure_ascii=False)
    return page.read_text(encoding="utf-8") + data
