"""The scheduler itself; imported only where pytest-xdist runs, whose class it derives from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdist.scheduler import LoadScheduling  # type: ignore[import-untyped]

from pytest_harbor.durations import by_length, is_task_id

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController  # type: ignore[import-untyped]


class LongestFirst(LoadScheduling):  # type: ignore[misc]
    """Gives each worker one item to run and one to run next.

    A worker starts an item only when it knows the one after it, and nobody can take that one back:
    it waits for as long as the first one runs. So behind a long item goes the shortest that is
    left, behind a short one the longest.
    """

    _rank: dict[int, int] | None = None
    """Place of each item among all, longest first; None where xdist's own way holds."""

    def schedule(self) -> None:
        """Start handing out, once all workers have collected the same."""
        first = self.collection is None
        if first and any(map(is_task_id, next(iter(self.node2collection.values()), ()))):
            self._begin()
        else:
            super().schedule()

    def _begin(self) -> None:
        if not self._check_nodes_have_same_collection():
            return
        self.collection = next(iter(self.node2collection.values()))
        self.pending[:] = by_length(self.config, self.collection)
        self._rank = {position: rank for rank, position in enumerate(self.pending)}
        for node in self.nodes:  # all have something to run before any has something waiting
            self._fill(node, 1)
        for node in self.nodes:
            self.check_schedule(node)

    def check_schedule(self, node: WorkerController, duration: float = 0) -> None:
        """Give a worker one item to run and one to wait; let it end when nothing is left."""
        if self._rank is None:
            super().check_schedule(node, duration)
            return
        if node.shutting_down:
            return
        self._fill(node, 2)
        if not self.pending and len(self.node2pending[node]) < 2:
            node.shutdown()

    def _fill(self, node: WorkerController, wanted: int) -> None:
        queued = self.node2pending[node]
        while self.pending and len(queued) < wanted:
            position = self._choose(behind=queued)
            self.pending.remove(position)
            queued.append(position)
            node.send_runtest_some([position])

    def _choose(self, behind: list[int]) -> int:
        """Find the shortest item to wait behind a long one, else the longest."""
        assert self._rank is not None
        long = bool(behind) and self._rank[behind[0]] < len(self._rank) / 2
        position: int = (max if long else min)(self.pending, key=self._rank.__getitem__)
        return position
