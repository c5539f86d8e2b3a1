"""What to say of a name that is not known: the one that was probably meant, or all there are."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def hint(name: str, known: Iterable[str], others: Iterable[str] = ()) -> str:
    """The nearest of the known names as a question, or all of them; ``others`` are only listed."""
    names = list(known)
    near = difflib.get_close_matches(name, names, n=1)
    if near:
        return f"did you mean {near[0]}?"
    return f"known: {', '.join([*names, *others]) or 'none'}"
