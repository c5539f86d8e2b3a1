"""A person enters main by the command that is shown, asks nobody's leave, and says done."""

from __future__ import annotations

import os
import shlex
import subprocess
import threading
from pathlib import Path

import pytest
from episodes import one_step, play

from pytest_harbor.agents.human import HumanAgent

pytestmark = pytest.mark.docker


def test_the_command_that_is_shown_leads_into_main(tmp_path: Path) -> None:
    master, slave = os.openpty()
    shown = []

    def person() -> None:
        text = ""
        while "Type done" not in text:
            text += os.read(master, 4096).decode()
        shown.append(text)
        command = next(line for line in text.splitlines() if "docker exec" in line)
        words = [word for word in shlex.split(command) if word != "-it"]
        subprocess.run([*words, "-c", "echo made by hand > made"], check=True)
        os.write(master, b"done\n")

    thread = threading.Thread(target=person)
    thread.start()
    task = one_step(tmp_path, test="grep -c hand /app/made > /logs/verifier/reward.txt")
    played = play(task, HumanAgent(os.ttyname(slave)))
    thread.join(10)
    assert "Do it." in shown[0]
    assert played.result.reward == 1
    turn = played[0].turn
    assert turn is not None
    assert turn.ended == "exited"
    os.close(master)
    os.close(slave)
