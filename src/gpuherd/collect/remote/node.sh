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
fields='' uuids='' healthy='' lost='' seen=' ' hidden=' '
nvidia_stuck=$stuck_before nvidia_at=0 whole_at=0
amd_stuck=$stuck_before amd_at=0 amd_static_at=0 rocm_options=''
details_at=0 facts_at=0 static_at=0
out='' pause=''

leave() {
    [ -z "$pause" ] || kill "$pause"
    if [ -n "$nvidia_stuck$amd_stuck" ]; then
        echo "${nvidia_stuck:-$amd_stuck}" >"$dir/stuck" # for the next session to know
    else
        rm -rf "$dir"
    fi
}
trap leave EXIT
trap 'exit 141' HUP INT PIPE TERM

# What can be asked with --query-gpu; the first of several names that this nvidia-smi knows. As in query.py.
candidates='index uuid name pci.bus_id driver_version compute_cap mig.mode.current memory.total memory.reserved
memory.used utilization.gpu utilization.memory utilization.encoder utilization.decoder temperature.gpu power.draw
enforced.power.limit|power.limit power.default_limit fan.speed clocks.current.sm|clocks.sm
clocks.current.memory|clocks.mem clocks.max.sm pstate clocks_event_reasons.active|clocks_throttle_reasons.active
ecc.errors.corrected.volatile.total ecc.errors.uncorrected.volatile.total'
rocm_most='--showid --showuniqueid --showserial --showproductname --showbus --showuse --showmemuse --showmeminfo vram
--showtemp --showpower --showmaxpower --showfan --showclocks --showpids --showdriverversion'

# The inner shell: "one NAME COMMAND…" leaves output and status of a command in files, "plain" without complaints.
inner='
d=$1; shift
trap "kill \$t; sleep 1; kill -9 \$t; exit 124" TERM
ended() { echo $t >"$d/tool"; wait $t; echo $? >"$d/$1.status"; : >"$d/tool"; }
one() { o=$1; shift; "$@" >"$d/$o" 2>&1 & t=$!; ended "$o"; }
plain() { o=$1; shift; "$@" >"$d/$o" & t=$!; ended "$o"; }
'

# try STEPS ARGUMENT…: run steps in the inner shell. Sets rc, and stuck to the pid of a command that cannot be ended.
try() {
    steps=$1 stuck=''
    shift
    : >"$dir/tool"
    timeout -k 2 "$deadline" sh -c "$inner$steps" sh "$dir" "$@" </dev/null >/dev/null
    rc=$?
    case $rc in
    124 | 137)
        rc=124
        IFS= read -r stuck <"$dir/tool" && kill -0 "$stuck" || stuck=''
        ;;
    esac
}

# status NAME: how a command ended; one that was not reached counts as ended at the deadline.
status() {
    status=124
    read -r status <"$dir/$1.status" || status=124
}

# forget NAME…: so that an old answer is not taken for a new one.
forget() {
    for name; do
        : >"$dir/$name"
        : >"$dir/$name.status"
    done
}

# slurp NAME: a command's output as text. 16 GPUs are 5 KB, 1,000 processes 60 KB; what is longer counts as failed.
slurp() {
    text=''
    while [ ${#text} -lt 131072 ] && { IFS= read -r line || [ -n "$line" ]; }; do
        text="$text$line$nl"
    done <"$dir/$1"
    [ ${#text} -lt 131072 ] || text='too long' status=27
}

# block NAME STATUS CONTENT; flush prints what has gathered, so that a round is few packets.
block() {
    out="$out$3${mark}block $1 $2$nl"
}
flush() {
    printf '%s' "$out" || exit 141
    out=''
}
# file NAME STATUS FILE: a block as it lies on disk; of a failure only the first words.
file() {
    flush
    if [ "$2" -eq 0 ]; then cat "$3"; else head -c 4096 "$3"; fi || exit 141
    out="${mark}block $1 $2$nl"
}

is_number() {
    case $1 in '' | *[!0-9]* | ???????????*) return 1 ;; esac
}

add_pid() {
    is_number "$1" || return
    case $pids in *" $1 "*) ;; *) pids="$pids$1 " ;; esac
}

choose_fields() {
    known=' ' count=0
    while [ $count -lt 4096 ] && IFS='"' read -r before first _ second _; do
        count=$((count + 1))
        [ -n "$before" ] || known="$known$first $second "
    done <"$dir/help"
    fields=''
    for names in $candidates; do
        IFS='|'
        for name in $names; do
            case $known in
            ' ' | *" $name "*)
                fields="$fields${fields:+,}$name"
                break
                ;;
            esac
        done
        unset IFS
    done
}

# One that it does not know after all is replaced by its other name, or dropped.
drop_field() {
    bad=${text#*Field \"} other=''
    bad=${bad%%\"*}
    case ",$fields," in *",$bad,"*) ;; *) return 1 ;; esac
    for names in $candidates; do
        case $names in "$bad|"*) other=${names#*|} ;; esac
    done
    rest=",$fields,"
    rest="${rest%%",$bad,"*}${other:+,$other},${rest#*",$bad,"}"
    rest=${rest#,}
    fields=${rest%,}
    fields_text="$fields"
}

nvidia_hung() {
    nvidia_stuck=$stuck
    nvidia_at=$((up + rest_seconds))
    block nvidia.gpus 124 "nvidia-smi did not end within $deadline s"
}

query='one gpus nvidia-smi "--query-gpu=$1" --format=csv,noheader,nounits ${2:+"$2"}
one apps nvidia-smi --query-compute-apps=gpu_uuid,pid,used_gpu_memory --format=csv,noheader,nounits ${2:+"$2"}'

nvidia() {
    if [ -n "$nvidia_stuck" ] && kill -0 "$nvidia_stuck"; then
        block nvidia.gpus 124 "an earlier nvidia-smi (pid $nvidia_stuck) still hangs in the driver"
        return
    fi
    nvidia_stuck=''
    if [ "$up" -lt "$nvidia_at" ]; then
        block nvidia.gpus 124 "nvidia-smi did not end within $deadline s and is asked less often"
        return
    fi
    if [ -z "$fields" ]; then
        forget help
        try 'one help nvidia-smi --help-query-gpu'
        [ $rc -ne 124 ] || { nvidia_hung && return; }
        choose_fields
        fields_text="$fields"
    fi
    # With a GPU that is lost the others are asked by name, and only now and then all.
    some=''
    [ "$up" -ge "$whole_at" ] || some=$healthy
    forget gpus apps
    for _ in 1 2 3 4 5 6 7 8; do
        try "$query" "$fields" "${some:+--id=$some}"
        [ $rc -ne 124 ] || { nvidia_hung && return; }
        status gpus
        slurp gpus
        case $text in *'Field "'*'" is not a valid field'*) drop_field || break ;; *) break ;; esac
    done
    [ -z "$fields_text" ] || block nvidia.fields 0 "$fields_text"
    fields_text=''
    if [ -n "$some" ]; then
        [ "$status" -eq 0 ] || whole_at=0
        block nvidia.gpus 15 "$lost"
        block nvidia.some "$status" "$text"
    elif [ "$status" -eq 0 ]; then
        healthy=''
        block nvidia.gpus 0 "$text"
        learn_gpus
    else
        block nvidia.gpus "$status" "$text"
        nvidia_failed
    fi
    status apps
    slurp apps
    block nvidia.apps "$status" "$text"
    IFS=$nl
    for line in $text; do
        line=${line#*, }
        add_pid "${line%%,*}"
    done
    unset IFS
}

learn_gpus() {
    uuids='' has_slices=''
    IFS=$nl
    for line in $text; do
        case $line in *', Enabled,'*) has_slices=1 ;; esac
        line=${line#*, }
        add_uuid "${line%%,*}"
    done
    unset IFS
    [ -z "$has_slices" ] || nvidia_log
}

add_uuid() {
    case $1 in *[!0-9A-Za-z-]*) ;; GPU-*) uuids="$uuids${uuids:+ }$1" ;; esac
}

nvidia_failed() {
    case $text in
    *'device handle'* | *'is lost'*) nvidia_each ;;
    *"couldn't communicate"* | *'not loaded'* | *'No devices'* | *mismatch* | *'nsufficient'*) ;;
    *) nvidia_log ;;
    esac
}

# Which GPUs still answer? Those are asked together from the next round on.
nvidia_each() {
    lost=$text healthy='' some=''
    if [ -z "$uuids" ]; then
        forget list
        try 'one list nvidia-smi -L'
        [ $rc -ne 124 ] || { nvidia_stuck=$stuck && return; }
        slurp list
        block nvidia.list 0 "$text"
        IFS=$nl
        for line in $text; do
            line=${line##*UUID: }
            add_uuid "${line%)*}"
        done
        unset IFS
    fi
    # shellcheck disable=SC2086 # split on purpose
    for uuid in $uuids; do forget "gpu.$uuid"; done
    try 'for u in $2; do one "gpu.$u" nvidia-smi "--query-gpu=$1" --format=csv,noheader,nounits "--id=$u"; done
        h=""
        for u in $2; do read -r s <"$d/gpu.$u.status" && [ "$s" = 0 ] && h="$h${h:+,}$u"; done
        [ -z "$h" ] || one apps nvidia-smi --query-compute-apps=gpu_uuid,pid,used_gpu_memory \
            --format=csv,noheader,nounits "--id=$h"' "$fields" "$uuids"
    [ $rc -ne 124 ] || nvidia_stuck=$stuck
    for uuid in $uuids; do
        status "gpu.$uuid"
        slurp "gpu.$uuid"
        [ "$status" -eq 0 ] && healthy="$healthy${healthy:+,}$uuid" some="$some$text"
    done
    [ -z "$healthy" ] || block nvidia.some 0 "$some"
    whole_at=$((up + rest_seconds))
}

# Slices, and drivers that do not answer the cheap query. The names of processes stay here.
nvidia_log() {
    forget log list
    try 'plain log nvidia-smi -q -x; one list nvidia-smi -L
        sed -e "s,<process_name>.*</process_name>,,
            /<process_name>/,/<\/process_name>/ {
                /<process_name>/ { s,<process_name>.*,,
                    b
                }
                /<\/process_name>/! d
                s,.*</process_name>,,
            }" "$d/log" >"$d/log.xml"
        sed -n "s,.*<pid>\([0-9]*\)</pid>.*,\1,p" "$d/log" >"$d/log.pids"'
    if [ $rc -eq 124 ]; then
        nvidia_stuck=$stuck nvidia_at=$((up + rest_seconds))
        block nvidia.log 124 ''
        return
    fi
    status log
    file nvidia.log "$status" "$dir/log.xml"
    status list
    file nvidia.list "$status" "$dir/list"
    while read -r pid; do add_pid "$pid"; done <"$dir/log.pids"
}

amd_hung() {
    amd_stuck=$stuck
    amd_at=$((up + rest_seconds))
    block "$1" 124 "the command did not end within $deadline s"
}

amd_waits() {
    if [ -n "$amd_stuck" ] && kill -0 "$amd_stuck"; then
        block "$1" 124 "an earlier command (pid $amd_stuck) still hangs in the driver"
        return
    fi
    amd_stuck=''
    [ "$up" -lt "$amd_at" ] || return 1
    block "$1" 124 "the command did not end within $deadline s and is asked less often"
}

amd() {
    amd_waits amd.metric && return
    if [ "$up" -ge "$amd_static_at" ]; then
        forget static list
        try 'plain static amd-smi static --json; plain list amd-smi list --json'
        [ $rc -ne 124 ] || { amd_hung amd.metric && return; }
        amd_static_at=$((up + 3600))
        status static
        file amd.static "$status" "$dir/static"
        status list
        file amd.list "$status" "$dir/list"
    fi
    forget metric process
    try 'plain metric amd-smi metric --json; plain process amd-smi process --json
        tr ",{}" "\n\n\n" <"$d/process" | sed -n "s/.*\"pid\" *: *\"\{0,1\}\([0-9][0-9]*\).*/\1/p" >"$d/amd.pids"'
    [ $rc -ne 124 ] || { amd_hung amd.metric && return; }
    status metric
    file amd.metric "$status" "$dir/metric"
    status process
    file amd.process "$status" "$dir/process"
    while read -r pid; do add_pid "$pid"; done <"$dir/amd.pids"
}

rocm() {
    amd_waits rocm.all && return
    forget rocm
    # An older one that does not know all these is asked for everything.
    try 'plain rocm rocm-smi ${1:-$2} --json
        read -r s <"$d/rocm.status"
        [ "$s" = 0 ] || [ -n "$1" ] || { : >"$d/rocm.old"; plain rocm rocm-smi -a --json; }
        tr ",{}" "\n\n\n" <"$d/rocm" | sed -n "s/.*\"PID\([0-9][0-9]*\)\".*/\1/p" >"$d/amd.pids"' \
        "$rocm_options" "$rocm_most"
    [ $rc -ne 124 ] || { amd_hung rocm.all && return; }
    [ ! -f "$dir/rocm.old" ] || rocm_options=-a
    status rocm
    file rocm.all "$status" "$dir/rocm"
    while read -r pid; do add_pid "$pid"; done <"$dir/amd.pids"
}

# All by the shell itself, without starting anything.
host() {
    text=''
    IFS= read -r line </proc/stat && text="$line$nl"
    IFS= read -r line </proc/loadavg && text="${text}loadavg $line$nl"
    IFS= read -r line </proc/uptime && text="${text}uptime $line$nl"
    while IFS= read -r line; do
        case $line in MemTotal:* | MemAvailable:* | SwapTotal:*) text="$text$line$nl" ;; SwapFree:*) text="$text$line$nl" && break ;; esac
    done </proc/meminfo
    block host 0 "$text"
}

# A process is known by pid, name and start: one that was seen before is not described again.
processes() {
    lines='' fresh='' fresh_count=0 now_seen=' ' now_hidden=' '
    for pid in $pids; do
        if IFS= read -r line <"/proc/$pid/stat"; then
            rest=${line##*) }
            # shellcheck disable=SC2086 # split on purpose
            set -- $rest
            key="/$pid/${20-}/${line%%)*}/"
            case $seen in
            *"$key"*) now_seen="$now_seen$key" lines="$lines$line$nl" ;;
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

facts() {
    if [ "$up" -ge "$static_at" ]; then
        try 'uname -m >"$d/static"
            for n in CLK_TCK PAGESIZE _NPROCESSORS_ONLN; do echo "$n $(getconf $n)"; done >>"$d/static"
            { readlink /proc/self/ns/pid; cat /proc/self/uid_map; grep "^btime" /proc/stat; } >>"$d/static"
            cat /etc/os-release >"$d/os"
            head -n 40 /proc/cpuinfo >"$d/cpu"'
        static_at=$((up + 3600))
        file facts.static 0 "$dir/static"
        file facts.os 0 "$dir/os"
        file facts.cpu 0 "$dir/cpu"
    fi
    [ "$up" -ge "$facts_at" ] || return
    facts_at=$((up + 60))
    mounts='' points='' count=0
    while read -r source point type _; do
        case $type in ext[234] | xfs | btrfs | zfs | f2fs | jfs | reiserfs | bcachefs | overlay | ufs) ;; *) continue ;; esac
        case $type$point in
        *\\* | overlay/?* | */boot | */boot/* | */snap/* | */var/lib/docker/* | */var/lib/containers/* | */var/lib/kubelet/*) continue ;;
        esac
        count=$((count + 1))
        [ $count -le 64 ] || break
        mounts="$mounts$source $point $type$nl" points="$points $point"
    done </proc/mounts
    forget df
    : >"$dir/time"
    : >"$dir/addresses"
    try 'read -r u _ </proc/uptime; echo "$(date "+%s %N") $u" >"$d/time"
        ip -o addr show up >"$d/addresses"
        [ -z "$1" ] || plain df df -P -k $1' "$points"
    [ $rc -ne 124 ] || facts_at=$((up + 600))
    slurp time
    block facts.time 0 "$text"
    IFS= read -r line </proc/sys/kernel/hostname && text="$line$nl"
    IFS= read -r line </proc/sys/kernel/osrelease && text="$text$line$nl"
    block facts.names 0 "$text"
    slurp addresses
    block facts.addresses 0 "$text"
    block facts.mounts 0 "$mounts"
    slurp df
    block facts.df 0 "$text"
}

# How long a command that hung is left alone, and a lost GPU too.
rest_seconds=$((6 * ${deadline%%.*} + 1))

# Long intervals in pieces, so that the end of the link is noticed soon.
pieces=0 first=$interval
if [ "${interval%%.*}" -gt 15 ]; then
    pieces=$((${interval%%.*} / 10 - 1))
    first=$((${interval%%.*} - pieces * 10))
fi

out="${mark}start 1$nl" number=0 fields_text=''
while :; do
    sleep "$first" >/dev/null &
    pause=$!
    number=$((number + 1)) pids=' '
    read -r up _ </proc/uptime
    up=${up%%.*}
    out="$out${mark}round $number$nl"
    tools=' '
    for name in nvidia-smi amd-smi rocm-smi; do command -v $name >/dev/null && tools="$tools$name "; done
    block tools 0 "$tools"
    case $tools in *' nvidia-smi '*) nvidia ;; esac
    case $tools in *' amd-smi '*) amd ;; *' rocm-smi '*) rocm ;; esac
    host
    processes
    facts
    out="$out${mark}end $number$nl"
    flush
    wait $pause
    pause='' count=$pieces
    while [ "$count" -gt 0 ]; do
        printf '%s' "${mark}alive$nl" || exit 141
        sleep 10
        count=$((count - 1))
    done
done
