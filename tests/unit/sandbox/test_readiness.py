from __future__ import annotations

from typing import Any

import pytest

from pytest_harbor.sandbox.readiness import ServiceState, trouble, verdict


def state(
    service: str = "db", policy: str = "no", restarts: int = 0, **changes: Any
) -> ServiceState:
    seen = {
        "Status": "running", "Running": True, "Restarting": False, "ExitCode": 0,
        "OOMKilled": False, "StartedAt": "2026-01-02T03:04:05.678901234Z",
    }  # fmt: skip
    host = {"RestartPolicy": {"Name": policy}}
    whole = {"Id": "id", "State": seen | changes, "HostConfig": host, "RestartCount": restarts}
    return ServiceState.of(service, whole)


def health(status: str, *codes: int) -> dict[str, Any]:
    return {"Health": {"Status": status, "Log": [{"ExitCode": c, "Output": "no\n"} for c in codes]}}


ENDED: dict[str, Any] = {"Running": False, "Status": "exited"}
CREATED: dict[str, Any] = {
    "Running": False,
    "Status": "created",
    "StartedAt": "0001-01-01T00:00:00Z",
}


@pytest.mark.parametrize(
    ("seen", "overdue", "expected"),
    [
        (state(), False, "ready"),
        (state(**health("healthy", 0)), False, "ready"),
        (state(**health("starting", 1)), False, "wait"),
        (state(**health("starting", 0, 1)), True, "failed"),
        (state(**health("starting")), True, "wait"),
        (state(**health("starting", 0)), True, "wait"),
        (state(**health("unhealthy", 1)), False, "failed"),
        (state(**health("none")), False, "ready"),
        (state(**CREATED), False, "wait"),
        (state(**ENDED), False, "ready"),
        (state(**ENDED, ExitCode=3), False, "failed"),
        (state(**ENDED, ExitCode=3, policy="on-failure"), False, "wait"),
        (state(Restarting=True, Status="restarting", policy="always"), False, "wait"),
        (state(Restarting=True, ExitCode=1, policy="always", restarts=3), False, "failed"),
        (state("main", **ENDED), False, "failed"),
    ],
)
def test_verdicts(seen: ServiceState, overdue: bool, expected: str) -> None:
    assert verdict(seen, overdue=overdue) == expected


def test_what_must_end_is_waited_for() -> None:
    assert verdict(state(), overdue=False, must_end=True) == "wait"
    assert verdict(state(**ENDED), overdue=False, must_end=True) == "ready"


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        (state(**ENDED, ExitCode=137, OOMKilled=True), "ended with exit code 137, killed for lack"),
        (state(**health("unhealthy", 0, 7)), "its last probe ended with 7: no"),
        (state(**health("starting")), "no probe of its healthcheck has ended"),
        (state(**CREATED), "is created"),
    ],
)
def test_stories(seen: ServiceState, words: str) -> None:
    assert trouble([seen]).startswith("service db ")
    assert words in trouble([seen])
