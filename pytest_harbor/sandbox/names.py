"""Names of Compose projects: legal, readable, and never the same for two episodes (B72)."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from typing import Final

_LONGEST_SLUG: Final = 40
_HASH_DIGITS: Final = 10


def slug(text: str, *, longest: int = _LONGEST_SLUG, empty: str = "task") -> str:
    """Lower-case ASCII letters, digits and single hyphens, with neither end a hyphen."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "-", plain.lower())[:longest].strip("-") or empty


def project_name(name: str, *identity: str) -> str:
    """Name a group: the task's name for the reader, and a hash of ``identity`` against clashes.

    ``identity`` is whatever tells one group from all others: run, task path, attempt. Names that
    slug to the same text (``My.Task`` and ``my-task``) thus stay apart. At most 63 characters, so
    that it fits a DNS label, and its last one is a letter or digit.
    """
    whole = hashlib.sha256("\0".join((name, *identity)).encode("utf-8", "surrogatepass"))
    return f"{slug(name)}-{whole.hexdigest()[:_HASH_DIGITS]}"
