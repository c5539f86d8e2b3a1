"""What a simulated user hands out of its own records, and what that says about it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from pytest_harbor.episode.outcome import Outcome
from pytest_harbor.episode.services import check_export
from pytest_harbor.errors import UserError
from pytest_harbor.user.export import Export, ask


class Answering:
    status = 200
    body: bytes = b"{}"

    def __init__(self) -> None:
        answering = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(answering.status)
                self.send_header("content-length", str(len(answering.body)))
                self.end_headers()
                self.wfile.write(answering.body)

            def log_message(self, *_: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/export-user-logs?token=t"


@pytest.fixture
def sidecar() -> Iterator[Answering]:
    answering = Answering()
    thread = threading.Thread(target=answering.server.serve_forever, args=(0.01,))
    thread.start()
    yield answering
    answering.server.shutdown()
    thread.join()
    answering.server.server_close()


EVENTS = "".join(
    json.dumps({"event": name}) + "\n"
    for name in ("llm_tool_round_error", "llm_last_resort_reply", "llm_last_resort_reply")
)


@pytest.mark.parametrize(
    "document",
    [
        {"files": {"events.jsonl": EVENTS, "ask-user.jsonl": "{}\n"}},
        {"events.jsonl": EVENTS, "ask-user.jsonl": "{}\n", "manifest": {"events": 3}},
        {"files": {"/tmp/user-server-logs/events.jsonl": EVENTS, "x/ask-user.jsonl": "{}\n"}},
    ],
)
def test_files_are_found_wherever_they_stand(sidecar: Answering, document: object) -> None:
    sidecar.body = json.dumps(document).encode()
    export = ask(sidecar.url)
    assert export is not None
    assert dict(export.files) == {"events.jsonl": EVENTS, "ask-user.jsonl": "{}\n"}
    assert export.canned == {"llm_last_resort_reply": 2}


def test_no_such_thing_is_no_trouble(sidecar: Answering) -> None:
    sidecar.status = 404
    assert ask(sidecar.url) is None
    assert ask("http://127.0.0.1:1/export-user-logs") is None


@pytest.mark.parametrize(("status", "body"), [(403, b"{}"), (200, b"<html>")])
def test_something_that_is_kept_back_is_said(sidecar: Answering, status: int, body: bytes) -> None:
    sidecar.status, sidecar.body = status, body
    export = ask(sidecar.url)
    assert export is not None
    assert len(export.notes) == 1
    assert export.files == {}


def test_a_stock_answer_degrades_the_user_and_another_attempt_at_it_does_not() -> None:
    check_export(None)
    fallback = json.dumps({"event": "llm_tool_round_error"})
    check_export(Export({"events.jsonl": fallback}))
    # what an agent said is no event
    check_export(Export({"ask-user.jsonl": EVENTS, "events.jsonl": '"llm_last_resort_reply"\n{'}))
    with pytest.raises(UserError, match=r"llm_last_resort_reply \(2\)") as said:
        check_export(Export({"events.jsonl": EVENTS}))
    assert said.value.outcome == Outcome.USER_DEGRADED
