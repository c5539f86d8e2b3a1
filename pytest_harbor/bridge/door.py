"""The one synchronous door to Harbor's code, which is asynchronous and an extra of ours."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from types import ModuleType
from typing import Any, Final, TypeVar

from pytest_harbor.errors import RecipeError
from pytest_harbor.task.timeouts import Deadline

T = TypeVar("T")

PREFIX: Final = "harbor:"
"""How the name of something of Harbor's begins."""
_OLDEST: Final = (3, 12)


def require_harbor(source: str) -> ModuleType:
    """Harbor's package, imported when somebody asks for it.

    Raises:
        RecipeError: this Python is too old for it, or the extra is not installed.
    """
    if sys.version_info < _OLDEST:
        found = ".".join(map(str, sys.version_info[:2]))
        raise RecipeError(
            f"{source}: names that begin with '{PREFIX}' need Python 3.12 or newer, and this is "
            f"Python {found}: run pytest with a newer one and install pytest-harbor[harbor] there"
        )
    try:
        import harbor
    except ImportError as error:
        raise RecipeError(
            f"{source}: names that begin with '{PREFIX}' need the package harbor ({error}): "
            "pip install 'pytest-harbor[harbor]'"
        ) from error
    found_module: ModuleType = harbor
    return found_module


def wait_for(start: Callable[[], Coroutine[Any, Any, T]], deadline: Deadline) -> T:
    """Run asynchronous code in a loop of its own; at the deadline it is cancelled.

    Raises:
        TimeoutError: the deadline has passed; other faults come as they are.
    """

    async def bounded() -> T:
        async with asyncio.timeout(deadline.remaining()):
            return await start()

    return asyncio.run(bounded())
