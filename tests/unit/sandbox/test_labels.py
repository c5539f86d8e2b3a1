from __future__ import annotations

import dataclasses
import os
import socket
import subprocess
import time

import pytest

from pytest_harbor.sandbox import labels
from pytest_harbor.sandbox.labels import Owner, has_expired


@pytest.fixture
def owner() -> Owner:
    return Owner.of_this_process("run", "episode")


def test_labels_lead_back_to_their_owner(owner: Owner) -> None:
    assert Owner.of_labels(owner.labels()) == owner
    assert owner.labels()["pytest-harbor.owner-pid"] == str(os.getpid())
    assert owner.labels()["pytest-harbor.owner-host"] == socket.gethostname()


@pytest.mark.parametrize("found", [{}, {"pytest-harbor.owner-pid": "x"}, {"a": "b"}])
def test_foreign_labels_have_no_owner(found: dict[str, str]) -> None:
    assert Owner.of_labels(found) is None


def test_a_living_process_is_not_dead(owner: Owner) -> None:
    assert not owner.is_dead()


def test_an_ended_process_is_dead(owner: Owner) -> None:
    with subprocess.Popen(["true"]) as process:
        born = labels.birth_of(process.pid)
    assert dataclasses.replace(owner, pid=process.pid, birth=born or owner.birth).is_dead()


def test_a_recycled_id_is_another_process(owner: Owner) -> None:
    place, _, started = owner.birth.rpartition(":")
    assert dataclasses.replace(owner, birth=f"{place}:{int(started) - 1}").is_dead()


def test_another_host_or_pid_namespace_cannot_be_judged(owner: Owner) -> None:
    assert not dataclasses.replace(owner, host="elsewhere", pid=1 << 22).is_dead()
    boot, _, started = owner.birth.split(":")
    assert not dataclasses.replace(owner, pid=1 << 22, birth=f"{boot}:1:{started}").is_dead()


def test_nothing_lives_through_a_reboot_but_another_machine_may_have_our_name(
    owner: Owner,
) -> None:
    before = dataclasses.replace(owner, birth=f"00000000:{owner.birth.partition(':')[2]}")
    assert before.is_dead(same_machine=True)
    assert not before.is_dead(same_machine=False)


def test_expiry(owner: Owner) -> None:
    assert not has_expired(owner.labels())
    assert has_expired(owner.labels(lifetime=-2))
    assert not has_expired({})
    assert not has_expired({labels.EXPIRES: "soon"})
    assert int(owner.labels()[labels.EXPIRES]) > time.time() + 3600
