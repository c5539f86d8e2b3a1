"""The scheduler itself; imported only where pytest-xdist runs, whose class it derives from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdist.scheduler import LoadScheduling  # type: ignore[import-untyped]

from pytest_harbor.scheduling import by_length, is_task_id

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController  # type: ignore[import-untyped]


class LongestFirst(LoadScheduling):  # type: ignore[misc]
    """Gives each worker one item to run and one to run next.

    A worker starts an item only when it knows the one after it, and nobody can take that one back:
    it waits for as long as the first one runs. So behind a long item goes the shortest that is
    left, behind a short one the longest.
    """

    _order: list[int] | None = None
    """Positions in the collection, longest first; None where xdist's own way holds."""

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
        self._order = by_length(self.config, self.collection)
        self.pending[:] = self._order
        for _ in range(2):  # everybody has something to run before anybody has something to wait
            for node in self.nodes:
                self.check_schedule(node)

    def check_schedule(self, node: WorkerController, duration: float = 0) -> None:
        """Give a worker its next item, if it has none waiting; let it end when nothing is left."""
        if self._order is None:
            super().check_schedule(node, duration)
            return
        if node.shutting_down:
            return
        queued = self.node2pending[node]
        if self.pending and len(queued) < 2:
            self._send(node, self._choose(self._order, queued))
        if not self.pending and len(queued) < 2:
            node.shutdown()

    def _choose(self, order: list[int], queued: list[int]) -> int:
        """Take the shortest item to wait behind a long one, else the longest."""
        place = order.index
        self.pending.sort(key=place)  # what a dead worker gave back was put at the end
        behind_a_long_one = bool(queued) and place(queued[0]) < len(order) / 2
        position: int = self.pending.pop(-1 if behind_a_long_one else 0)
        return position

    def _send(self, node: WorkerController, position: int) -> None:
        self.node2pending[node].append(position)
        node.send_runtest_some([position])
