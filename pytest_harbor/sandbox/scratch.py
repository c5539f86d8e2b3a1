"""The ground that grading stands on: fresh before, and none of it left for the next turn.

Folders are emptied by the engine as part of a put, so that no tool of the container has to be
trusted or started. What test.sh leaves elsewhere is found by listings around it, in the command
that runs it anyway; a command of its own is needed only where there is something to remove.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pytest_harbor.errors import SandboxError
from pytest_harbor.sandbox.command import BIRTH, Command
from pytest_harbor.sandbox.container import Container, Entry, Ran, UserIds
from pytest_harbor.task.timeouts import Deadline

LOGS: Final = "/logs"
AGENT: Final = "/logs/agent"
VERIFIER: Final = "/logs/verifier"
ARTIFACTS: Final = "/logs/artifacts"
TESTS: Final = "/tests"

SCRATCH: Final = ("/tmp", "/var/tmp", "/dev/shm", "/run")  # noqa: S108
"""Where programs put what they do not mean to keep."""

CHANGES_SHOWN: Final = 200
"""How many of the changed paths are named."""

_SKIPPED_FOLDERS: Final = (".git", "node_modules", ".venv", "site-packages", "__pycache__")
"""Large folders that are not searched for changes; a list of changes is a courtesy."""

_NUL: Final = b"\0"

_LIST: Final = r"""
_ph_walk() {
  for _ph_path in "$1"/* "$1"/.[!.]* "$1"/..?*; do
    [ -e "$_ph_path" ] || [ -L "$_ph_path" ] || continue
    printf '%s\0' "$_ph_path"
    if [ -d "$_ph_path" ] && [ ! -L "$_ph_path" ]; then _ph_walk "$_ph_path"; fi
  done
}
_ph_list() {
  if command -v find >/dev/null 2>&1; then
    find -H "$@" -xdev -mindepth 1 -print0 2>/dev/null
  else
    for _ph_root in "$@"; do _ph_walk "$_ph_root"; done
  fi
}
"""
"""List all names, with ``find`` or without."""

# /proc/self/ of find is as old as find: its ctime is the time now, by the clock of all file
# systems of this kernel. That clock stands still for some milliseconds, and -newerct wants later
# times: without its last digits the moment is before all that comes after it, in the same tick
# too. Only GNU find knows both -newerct and -printf.
_BEFORE: Final = (
    _LIST
    + r"""
_ph_time=$(find /proc/self/ -prune -newerct @0 -printf %C@ 2>/dev/null)
_ph_time=${_ph_time%????????}
printf '%s\0' "$_ph_time"
"""
)


@dataclass(frozen=True)
class Cleaned:
    """What grading left behind."""

    removed: tuple[str, ...] = ()
    """New paths in scratch folders; of a new folder only the folder."""
    changed: tuple[str, ...] = ()
    """Files that were changed and still are: in scratch folders, working directory and home."""


@dataclass(frozen=True)
class _Listing:
    """What the fragments around test.sh found."""

    moment: str
    """When it began, in the words of ``find``; empty where ``find`` cannot compare times."""
    before: frozenset[bytes]
    after: tuple[bytes, ...] | None
    """The output of the second listing; None when test.sh did not come to its end."""


class Ground:
    """The folders of grading in one container, through all steps of an episode."""

    def __init__(self, container: Container) -> None:
        self._container = container
        self._left: dict[str, int | None] = {}
        """Folders that nobody has a reason to touch, with their time stamps in nanoseconds."""
        self._home = "/root"
        self._as_root = True
        self._keeps_tests = False
        self._listing: _Listing | None = None

    def prepare_logs(self) -> None:
        """Make the log folders that every task may count on (harbor-format 4)."""
        tests = self._container.stat(TESTS)
        self._left[TESTS] = None if tests is None else tests.mtime_ns
        folders = [_folder(path, fresh=False) for path in (AGENT, VERIFIER, ARTIFACTS)]
        self._freshen([_folder(LOGS, 0o755, fresh=False), *folders], [VERIFIER])

    def before_grading(
        self,
        verifier: UserIds,
        *,
        keep_tests: bool = False,
        entries: Iterable[Entry] = (),
    ) -> tuple[str, ...]:
        """Give the verifier an empty /tests and /logs/verifier that only it can enter (B26-B28).

        Nobody else may be running. ``keep_tests`` is for tests that are part of the image,
        ``entries`` are laid on the fresh ground in the same call. Returns signs that somebody had
        prepared the ground; what they had put there is gone.
        """
        self._home, self._as_root = verifier.home, verifier.uid == 0
        self._keeps_tests, self._listing = keep_tests, None
        watched = [VERIFIER] if keep_tests else [TESTS, VERIFIER]
        signs = tuple(sign for path in watched if (sign := self._sign(path)))
        owned = [_folder(path, 0o700, owner=verifier) for path in watched]
        self._freshen([_folder(LOGS, 0o755, fresh=False), *owned, *entries], watched)
        return signs

    def run_tests(
        self,
        command: str | Sequence[str],
        *,
        log: str,
        user: str | int | None = None,
        workdir: str | None = None,
        env: Mapping[str, str] | None = None,
        deadline: Deadline,
    ) -> Ran:
        """Run test.sh as :meth:`Container.run_logged` does, and note what it leaves behind."""
        ran = self._container.run_logged(
            command,
            log=log,
            user=user,
            workdir=workdir,
            env=env,
            deadline=deadline,
            before=_BEFORE + f"_ph_list {self._roots()}\nprintf '\\0'\n",
            after=self._after(),
        )
        self._listing = _parse(ran)
        return ran

    def after_grading(self, deadline: Deadline, leftovers: Sequence[str] | None = None) -> Cleaned:
        """Remove what grading brought, and empty /logs/agent for the next turn (B26).

        ``leftovers`` is what a sweep since then has killed: when it is known that nobody was left,
        the listing at the end of test.sh is the last word, and no further command is needed.

        Raises:
            SandboxError: it cannot be done (outcome ``cleaning_failed``); no agent may come after.
        """
        listing = self._listing
        if listing is None:
            raise SandboxError(
                "What test.sh left behind cannot be told: there is no listing of the scratch "
                "folders from before it. Something interfered with the command that runs it.",
                outcome="cleaning_failed",
            )
        found = self._sorted(listing, listing.after) if listing.after is not None else None
        if found is None or found.removed or leftovers is None or leftovers or not self._as_root:
            found = self._clean_inside(listing, deadline)
        tests = [] if self._keeps_tests else [_folder(TESTS, 0o755)]
        self._freshen([*tests, _folder(AGENT), _folder(VERIFIER)], [TESTS, VERIFIER])
        return found

    # -- before ----------------------------------------------------------------------------

    def _sign(self, path: str) -> str:
        """Say what somebody has put at a path, empty when it is as it was left."""
        facts, left = self._container.stat(path), self._left.get(path)
        if facts is not None and facts.kind == "folder" and facts.mtime_ns == left:
            return ""
        above = self._container.stat(LOGS) if path == VERIFIER else None
        if above is not None and above.kind != "folder":
            path, facts = LOGS, above
        if facts is None:
            return ""
        if facts.kind == "folder":
            names = self._container.listing(path, limit=20)
            return f"{path} held {', '.join(names)} before grading" if names else ""
        what = {"link": f"a link to {facts.target}", "file": "a file"}.get(facts.kind, "no folder")
        return f"{path} was {what} before grading"

    def _freshen(self, entries: Sequence[Entry], paths: Iterable[str]) -> None:
        """Put entries, and remember the stamps of the folders that now are as they should be."""
        try:
            self._container.put(entries)
        except SandboxError as fault:
            if fault.outcome == "sandbox_died":
                raise
            self._empty_mounts(entries)
        for entry in entries:
            if entry.path in paths:
                self._left[entry.path] = (entry.mtime or 0) * 10**9

    def _empty_mounts(self, entries: Sequence[Entry]) -> None:
        """Do the same where a folder is a mount, which the engine cannot replace."""
        folders = [entry.path for entry in entries if entry.fresh]
        program = (
            'for _ph_root in "$@"; do find -H "$_ph_root" -xdev -mindepth 1 -maxdepth 1 '
            "-exec rm -rf -- {} +; done 2>&1"
        )
        deadline = Deadline.after(60, "emptying folders")
        with self._container.start(BIRTH + program, folders, deadline, user="0") as command:
            said = command.wait(1 << 16).output.decode("utf-8", "replace")
        self._container.put([replace(entry, fresh=False) for entry in entries])
        for path in folders:
            if left := self._container.listing(path, limit=5):
                wanted = {entry.path for entry in entries}
                left = tuple(name for name in left if f"{path}/{name}" not in wanted)
            if left:
                raise SandboxError(
                    f"{path} cannot be emptied, it still holds {', '.join(left)}: {said[:500]}",
                    outcome="cleaning_failed",
                )

    # -- around test.sh --------------------------------------------------------------------

    def _roots(self) -> str:
        """Scratch folders and what is mounted in them, which -xdev would leave out, for a shell."""
        mounts = [str(mount["Destination"]) for mount in self._container.facts["Mounts"] or ()]
        mounts += list(self._container.facts["HostConfig"].get("Tmpfs") or ())
        below = tuple(f"{folder}/" for folder in SCRATCH)
        inner = sorted({path for path in mounts if path.startswith(below)})
        return " ".join(shlex.quote(path) for path in (*SCRATCH, *inner))

    def _after(self) -> str:
        """List what has changed since: kind and path each, then what changed elsewhere."""
        skipped = " -o ".join(f"-name {shlex.quote(name)}" for name in _SKIPPED_FOLDERS)
        places = {self._container.workdir, self._home} - {"/"}
        others = " ".join(shlex.quote(place) for place in sorted(places))
        changes = (
            f"find -H {others} -xdev \\( {skipped} \\) -prune -o -newerct @$_ph_time ! -type d "
            "-printf '%y%p\\0' 2>/dev/null | head -c 65536\n"
        )
        return (
            f'if [ -n "$_ph_time" ]; then\nfind -H {self._roots()} -xdev -mindepth 1 '
            "-newerct @$_ph_time -printf '%y%p\\0' 2>/dev/null\nprintf '\\0'\n"
            + (changes if others else "")
            + f"else\n_ph_list {self._roots()}\nprintf '\\0'\nfi\nprintf '\\0end\\0'\n"
        )

    # -- after -----------------------------------------------------------------------------

    def _clean_inside(self, listing: _Listing, deadline: Deadline) -> Cleaned:
        """Look again as root and remove what is new: one command, asked and told in turns."""
        program = (
            self._looking(listing)
            + "IFS= read -r _ph_size\n"
            + '[ "$_ph_size" = 0 ] || head -c "$_ph_size" | xargs -0 rm -rf -- 2>&1\n'
        )
        with self._container.start(
            program, [], deadline, user="0", workdir="/", stdin=True
        ) as command:
            found = self._sorted(listing, self._ask(command, deadline))
            doomed = b"".join(_encode(path) + _NUL for path in found.removed)
            command.send(b"%d\n" % len(doomed) + doomed)
            ran = command.wait(1 << 16)
        if ran.exit_code != 0:
            said = ran.output.decode("utf-8", "replace").strip()
            raise SandboxError(
                f"What test.sh left behind cannot be removed ({ran.limit or said[:500]}): "
                f"{', '.join(found.removed[:10])}",
                outcome="cleaning_failed",
            )
        self._check_gone(found.removed)
        return found

    def _looking(self, listing: _Listing) -> str:
        """A program that lists anew what has changed since before test.sh."""
        return BIRTH + _LIST + f"_ph_time={shlex.quote(listing.moment)}\n" + self._after()

    def _sorted(self, listing: _Listing, after: Sequence[bytes]) -> Cleaned:
        """Sort a listing; a working directory in a scratch folder is the agent's all the same."""
        workdir = self._container.workdir
        return _sort(listing, after, workdir if workdir not in ("/", *SCRATCH) else "")

    def _ask(self, command: Command, deadline: Deadline) -> tuple[bytes, ...]:
        """Read the listing up to its end mark."""
        said = b""
        while not said.endswith(b"\0end\0"):
            piece = command.read()
            if not piece:
                why = "the container's shell or find does not do its work"
                raise SandboxError(
                    "The scratch folders cannot be listed after grading: "
                    f"{deadline.describe() if piece is None else why}.",
                    outcome="cleaning_failed",
                )
            said += piece
        return tuple(said.split(_NUL))

    def _check_gone(self, paths: Sequence[str]) -> None:
        """Make sure from outside, where the engine can see, that paths are gone."""
        for path in paths[:20]:
            if not self._container.is_hidden(path) and self._container.stat(path) is not None:
                raise SandboxError(
                    f"{path}, which test.sh left behind, is still there after it was removed.",
                    outcome="cleaning_failed",
                )


def _folder(
    path: str, mode: int = 0o777, *, owner: UserIds | None = None, fresh: bool = True
) -> Entry:
    uid, gid = (owner.uid, owner.gid) if owner else (0, 0)
    # an hour ago, so that whatever anybody does to the folder gives it another time
    return Entry(path, None, mode, uid, gid, fresh=fresh, mtime=int(time.time()) - 3600)


def _encode(path: str) -> bytes:
    return path.encode("utf-8", "surrogateescape")


def _decode(path: bytes) -> str:
    return path.decode("utf-8", "surrogateescape")


def _parse(ran: Ran) -> _Listing | None:
    """Read what the fragments printed: the time, names up to an empty one, and the end listing."""
    if len(ran.output) != ran.output_size:
        return None
    moment, _, rest = ran.output.partition(_NUL)
    if not moment.replace(b".", b"").isdigit() and moment:
        return None
    if rest.startswith(_NUL):
        names, rest = b"", rest[1:]
    else:
        names, end, rest = rest.partition(_NUL + _NUL)
        if not end:
            return None
    after = tuple(rest.split(_NUL)) if rest.endswith(b"\0end\0") else None
    return _Listing(moment.decode("ascii"), frozenset(names.split(_NUL)), after)


def _sort(listing: _Listing, after: Sequence[bytes], spared: str) -> Cleaned:
    """Tell what is new from what was there and has changed; new files in ``spared`` may stay."""
    split = after.index(b"")
    # the end mark, and before it an empty record or half a path, if the list was cut short
    scratch, others = after[:split], after[split + 1 : -3]
    if not listing.moment:
        scratch = [b"?" + name for name in scratch]
    inside = _encode(spared.rstrip("/") + "/") if spared else _NUL
    fresh, changed = [], []
    for kind, path in ((record[:1], record[1:]) for record in scratch):
        if path not in listing.before and not path.startswith(inside):
            fresh.append(path)
        elif kind not in b"d?":
            changed.append(path)
    names = {_decode(path) for path in (*changed, *(record[1:] for record in others))}
    own = (f"{LOGS}/", f"{TESTS}/")
    shown = sorted(name for name in names if not name.startswith(own))[:CHANGES_SHOWN]
    return Cleaned(_topmost(fresh), tuple(shown))


def _topmost(paths: Iterable[bytes]) -> tuple[str, ...]:
    """Paths without those that lie in another of them."""
    kept: list[bytes] = []
    for path in sorted(paths, key=lambda path: path.split(b"/")):
        if not kept or not path.startswith(kept[-1] + b"/"):
            kept.append(path)
    return tuple(_decode(path) for path in kept)
