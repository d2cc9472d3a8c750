# Who is on the GPUs.

seen=' ' hidden=' ' same_pids='' stat_files='' details_at=0

# A process is known by pid, name and start: one that was seen before is not described again.
processes() {
    # The same as before: all at once. Now and then one by one, to see who became another program.
    if [ "$pids" = "$same_pids" ] && [ $((number % 10)) -ne 0 ]; then
        flush
        # shellcheck disable=SC2086 # split on purpose
        grep -a '' $stat_files /dev/null
        rc=$?
        block pids.same $rc ''
        [ $rc -ne 0 ] || return
    fi
    lines='' fresh='' fresh_count=0 now_seen=' ' now_hidden=' ' same_pids=$pids stat_files='' count=0 known_count=0
    for pid in $pids; do
        count=$((count + 1)) stat_files="$stat_files /proc/$pid/stat"
        if IFS= read -r line <"/proc/$pid/stat"; then
            rest=${line##*) }
            # shellcheck disable=SC2086 # split on purpose
            set -- $rest
            key="/$pid/${20-}/${line%%)*}/"
            case $seen in
            *"$key"*) now_seen="$now_seen$key" lines="$lines$line$nl" known_count=$((known_count + 1)) ;;
            *)
                if [ "$up" -ge "$details_at" ] && [ $fresh_count -lt 64 ]; then
                    fresh="$fresh $pid" fresh_count=$((fresh_count + 1)) now_seen="$now_seen$key"
                else
                    lines="$lines$line$nl"
                fi
                ;;
            esac
        else
            hide "$pid"
        fi
    done
    seen=$now_seen hidden=$now_hidden
    [ -z "$fresh" ] || describe
    [ $count -gt 2 ] && [ $count -eq $known_count ] || same_pids=''
    for pid in $fresh; do # read again: if it has another start now, the description is not of this one
        IFS= read -r line <"/proc/$pid/stat" && lines="$lines$line$nl"
    done
    block pids 0 "$lines"
}

# Whether a process that cannot be read is there: a folder that is closed to us, or one that is hidden altogether.
hide() {
    case $hidden in *" $1:"*)
        owner=${hidden#*" $1:"}
        owner=${owner%% *}
        ;;
    *)
        owner=''
        if [ -d "/proc/$1" ]; then
            owner=$(ls -ldn "/proc/$1")
            # shellcheck disable=SC2086 # split on purpose
            set -- "$1" $owner
            owner=${4-}
        fi
        ;;
    esac
    if [ -d "/proc/$1" ]; then
        lines="$lines$1 hidden $owner$nl" now_hidden="$now_hidden$1:$owner "
    else
        case $(kill -0 "$1" 2>&1) in
        *ermitted*) lines="$lines$1 hidden$nl" ;;
        *) lines="$lines$1 gone$nl" ;;
        esac
    fi
}

# Owner, control group and as much of the command line as is allowed to leave. Reading a command line can hang, the
# user database too.
describe() {
    try 'f=""
        for p in $1; do f="$f /proc/$p/status /proc/$p/cgroup"; done
        grep -asE "^Uid:|^[0-9]+:[^:]*:/" $f /dev/null >"$d/who"
        getent passwd $(sed -n "s/.*:Uid:[^0-9]*\([0-9]*\).*/\1/p" "$d/who") >"$d/users"
        for p in $1; do
            case $2 in
            full) head -c 16388 "/proc/$p/cmdline" >"$d/cmd" ;;
            program) tr "\0" "\n" <"/proc/$p/cmdline" | head -n 1 | sed "s/ .*//; s,.*/,," >"$d/cmd" ;;
            none) break ;;
            esac
            mv "$d/cmd" "$d/cmd.$p"
        done' "$fresh" "$command_lines"
    [ $rc -ne 124 ] || details_at=$((up + rest_seconds)) seen=' ' # all of them another time
    file who 0 "$dir/who"
    text=''
    while IFS=: read -r name _ uid _; do text="$text$uid $name$nl"; done <"$dir/users"
    block users 0 "$text"
    done_files="$dir/who $dir/users"
    for pid in $fresh; do
        [ -f "$dir/cmd.$pid" ] || continue
        file "cmdline.$pid" 0 "$dir/cmd.$pid"
        done_files="$done_files $dir/cmd.$pid"
    done
    # shellcheck disable=SC2086 # split on purpose
    rm -f $done_files
}
