"""Rules for the names that a task gives: of steps, packages, hosts, services and headers.

Each function returns the value in its settled form or raises ValueError with a reason and a
remedy; who calls it adds file and key. Only the standard library is used.
"""

from __future__ import annotations

import ipaddress
import re
import unicodedata
from collections.abc import Iterable

_FORBIDDEN = frozenset('<>:"/\\|?*')
_WINDOWS_DEVICES = frozenset(
    ["con", "prn", "aux", "nul", "conin$", "conout$"]
    + [f"{device}{digit}" for device in ("com", "lpt") for digit in "123456789¹²³"]
)
_PACKAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*")
_SERVICE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_HOST_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


def step_name(name: str) -> str:
    """Check a step's name: it is a folder on every system (harbor-format 2.7)."""
    if not name:
        raise ValueError("is empty; name the folder under steps/")
    if name in (".", ".."):
        raise ValueError(f"{name!r} is not a folder name; name the folder under steps/")
    bad = sorted(
        {char for char in name if char in _FORBIDDEN or unicodedata.category(char) == "Cc"}
    )
    if bad:
        shown = " ".join(repr(char)[1:-1] for char in bad)
        raise ValueError(f"{name!r} holds {shown}, which a folder name may not; rename the step")
    if name[-1] in ". ":
        raise ValueError(f"{name!r} ends in a dot or space; rename the step")
    if name.split(".")[0].rstrip().casefold() in _WINDOWS_DEVICES:
        raise ValueError(f"{name!r} is a device name on Windows; rename the step")
    if len(name.encode()) > 255:
        raise ValueError(f"{name[:20]!r}... is longer than 255 bytes; shorten it")
    return name


def twins(names: Iterable[str]) -> tuple[str, str] | None:
    """Find two names that a file system may take for one: equal after NFC and case folding."""
    seen: dict[str, str] = {}
    for name in names:
        key = unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())
        if key in seen:
            return seen[key], name
        seen[key] = name
    return None


def package_name(name: str) -> str:
    """Check ``[task].name``: ``org/name`` (harbor-format 2.2)."""
    if not _PACKAGE.fullmatch(name) or ".." in name:
        raise ValueError(
            f"{name!r} is not of the form org/name (letters, digits, '.', '_', '-', each part "
            "starting with a letter or digit, no '..')"
        )
    return name


def service_name(name: str) -> str:
    """Check the name of a Compose service (harbor-format 2.8)."""
    if not _SERVICE.fullmatch(name):
        raise ValueError(f"{name!r} is not a Compose service name")
    return name


def allowed_host(entry: str) -> str:
    """Settle an allow-list entry: host, ``*.suffix``, address or network (harbor-format 2.5)."""
    host = entry.strip().lower().removesuffix(".")
    try:
        if "/" in host and "://" not in host:
            return str(ipaddress.ip_network(host, strict=True))
        return str(ipaddress.ip_address(host))
    except ValueError as error:
        if "has host bits set" in str(error):
            network = ipaddress.ip_network(host, strict=False)
            raise ValueError(f"{entry!r} has host bits set; write {str(network)!r}") from None
    suffix = host.removeprefix("*.")
    labels = suffix.split(".")
    numeric = all(label.isdigit() for label in labels)
    if numeric or len(suffix) > 253 or not all(_HOST_LABEL.fullmatch(label) for label in labels):
        raise ValueError(
            f"{entry!r} is not a host name, '*.suffix', IP address or network "
            "(no scheme, port, path or other wildcard)"
        )
    return host


def header_name(name: str) -> str:
    """Check the name of an HTTP header (RFC 9110 token)."""
    if not _HEADER.fullmatch(name):
        raise ValueError(f"{name!r} is not an HTTP header name")
    return name


def is_credential(header: str) -> bool:
    """Tell whether a header's name says that its value is a secret (harbor-format 8)."""
    words = set(re.split(r"[-_.]", header.lower()))
    return bool(
        words & {"authorization", "auth", "token", "secret", "password", "credential"}
        or words & {"credentials", "cookie", "key", "apikey", "accesskey", "authentication"}
    )
