#!/bin/sh
# gpuherd on a node where nothing is installed: prints rounds of blocks for a hub, until nobody listens.
# Sent over SSH by the hub, or installed as the command of a key: restrict,command="/usr/local/bin/gpuherd-node".
# docs/collectors.md says what it runs and what that costs; src/gpuherd/wire/blocks.py what it prints.
#
# Reads one line, "gpuherd-ssh 1 TOKEN INTERVAL DEADLINE COMMAND_LINES", and nothing else. Writes nothing but a
# folder of its own for the output of commands, which it removes. POSIX sh, besides test -O and head -c.
#
# Every command that might hang runs as: timeout, which runs a shell, which runs the command in the background and
# waits. So this shell gets its answer at the deadline even when the command is stuck in the kernel and cannot be
# ended; such a one is remembered, and no second one is started beside it.
# shellcheck disable=SC2016 # the texts in single quotes are for the inner shell

set -f -u
unset token out line text stuck users IFS
LC_ALL=C PATH="$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/rocm/bin:/usr/lib/wsl/lib"
export LC_ALL PATH
umask 077
cd / || exit 64

refuse() {
    printf 'gpuherd-ssh refused %s\n' "$1"
    exit 64
}

case ${p-} in
'gpuherd-ssh '*) ;;
*) IFS= read -r p || refuse 'it was given no parameters' ;;
esac
# shellcheck disable=SC2086 # split on purpose
set -- $p
unset p s
[ $# -eq 6 ] || refuse 'these parameters are not for it'
[ "$1 $2" = 'gpuherd-ssh 1' ] || refuse 'it speaks version 1 of the protocol only: install the script of this hub'
token=$3 interval=$4 deadline=$5 command_lines=$6
case ${#token}$token in 32*[!0-9a-f]*) refuse 'the token is not one' ;; 32*) ;; *) refuse 'the token is not one' ;; esac
for seconds in "$interval" "$deadline"; do
    case $seconds in
    '' | *[!0-9.]* | *.*.* | .* | *. | 0[0-9]* | ????????*) refuse 'a time that is no number of seconds' ;;
    esac
done
case $command_lines in full | program | none) ;; *) refuse 'command lines are full, program or none' ;; esac
[ -r /proc/uptime ] || refuse 'there is no /proc: only Linux is understood'
timeout -k 1 5 true 2>/dev/null || refuse 'there is no timeout command with -k: install coreutils'

exec 2>/dev/null
ulimit -f 4096 # no command fills memory or disk with its output

# Where commands leave their output; in memory if possible. What is left of a session that was killed goes.
dir='' stuck_before=''
for base in /dev/shm /tmp /var/tmp "${TMPDIR:-/tmp}"; do
    dir=$(mktemp -d "$base/gpuherd.XXXXXX") && break
done
[ -d "$dir" ] || refuse 'there is no folder to write to: /dev/shm, /tmp and /var/tmp are closed or full'
set +f
for old in "${dir%/*}"/gpuherd.*; do
    # shellcheck disable=SC3067 # known to dash, ash, bash, ksh; others leave the old folder
    if [ "$old" != "$dir" ] && [ ! -L "$old" ] && [ -O "$old" ] && IFS= read -r pid <"$old/pid"; then
        kill -0 "$pid" && continue
        IFS= read -r pid <"$old/stuck" && kill -0 "$pid" && stuck_before=$pid
        rm -rf "$old"
    fi
done
set -f
echo $$ >"$dir/pid"

nl='
'
mark="$nl@$token "
nvidia_stuck=$stuck_before amd_stuck=$stuck_before
out='' pause=''

leave() {
    [ -z "$pause" ] || kill "$pause"
    stuck=${nvidia_stuck:-$amd_stuck}
    if [ -n "$stuck" ] && kill -0 "$stuck"; then
        echo "$stuck" >"$dir/stuck" # for the next session to know
    else
        rm -rf "$dir"
    fi
}
trap leave EXIT
trap 'exit 141' HUP INT PIPE TERM
