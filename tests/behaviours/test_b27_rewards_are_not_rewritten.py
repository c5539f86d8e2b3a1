"""B27, B28: a process that the agent left, or a file that it planted, makes no reward."""

from __future__ import annotations

import pytest
from boxes import Bench, a_box, soon

from pytest_harbor.sandbox.container import Entry

pytestmark = pytest.mark.docker

FORGER = b"""while sleep .02; do
  echo 1 >/logs/verifier/reward.txt
  echo '{"reward": 1}' >/logs/verifier/reward.json
done"""


@pytest.mark.parametrize(
    "how",
    ["sh /forge &", "setsid sh /forge &", "(nohup sh /forge &) &", "(trap '' TERM; . /forge) &"],
)
def test_a_background_process_does_not_live_to_forge(how: str) -> None:
    with a_box() as box:
        bench = Bench(box)
        box.put([Entry("/forge", FORGER)])
        bench.turn(f"{how} sleep 0.3")
        assert bench.processes.sweep(soon())
        _, signs = bench.grade("echo 0 >/logs/verifier/reward.txt; sleep 0.3")
        assert box.read("/logs/verifier/reward.txt") == b"0\n"
        assert box.read("/logs/verifier/reward.json") is None
        assert "reward.txt" in "".join(signs)


def test_a_reward_written_in_advance_is_gone() -> None:
    with a_box() as box:
        bench = Bench(box)
        bench.turn("echo 1 >/logs/verifier/reward.txt; chmod 0 /logs/verifier/reward.txt")
        ran, signs = bench.grade("exit 1")
        assert ran.exit_code == 1
        assert box.listing("/logs/verifier") == ("test-stdout.txt",)
        assert signs == ("/logs/verifier held reward.txt before grading",)


def test_another_user_cannot_write_into_the_ground() -> None:
    with a_box() as box:
        bench = Bench(box)
        bench.ground.before_grading(box.user("daemon"))
        for place in ("/tests", "/logs/verifier"):
            assert box.run(f"echo 1 >{place}/x", user="www-data", deadline=soon()).exit_code
            assert box.run(f"echo 1 >{place}/x", user="daemon", deadline=soon()).exit_code == 0
