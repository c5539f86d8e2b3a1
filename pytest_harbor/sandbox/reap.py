"""A shell program that ends processes inside a container, made of builtins alone.

It needs neither ``ps`` nor ``kill`` from the image, and works while no new process can be made.
Whom it may spare is said by birth: the kernel's own time stamp, which nobody can change.
"""

from __future__ import annotations

from typing import Final

KILL: Final = r"""
since=$1 session=$2 round=0
while [ $round -lt 10 ]; do
  round=$((round + 1)) keep=' ' young=
  for folder in /proc/[0-9]*; do
    stat=
    { while IFS= read -r part || [ -n "$part" ]; do stat="$stat $part"; done; } \
      2>/dev/null <"$folder/stat"
    [ -n "$stat" ] || continue
    set -- "${folder#/proc/}" ${stat##*) }
    case $2 in Z|X) continue ;; esac
    if [ "$1" = 1 ] || [ "$1" = $$ ] || [ "${21}" -lt "$since" ] ||
      { [ -n "$session" ] && [ "$5" != "$session" ]; }; then
      keep="$keep$4 "
    else
      young="$young $1:$4"
    fi
  done
  [ -n "$young" ] || exit 0
  for one in $young; do
    case $keep in *" ${one#*:} "*) ;; *) kill -9 "-${one#*:}" ;; esac
  done 2>/dev/null
  for one in $young; do kill -9 "${one%%:*}"; done 2>/dev/null
done
echo "$young"
exit 1
"""
"""``$1``: end all that was born at this tick or later (clock ticks since boot, field 22 of
proc_pid_stat(5)); ``$2``: only members of this session, or empty.

Process groups go first and at one blow, which no fork bomb outruns; a group with a member to be
kept is ended one by one. A process name may hold line ends and brackets: what counts follows the
last bracket.
"""
