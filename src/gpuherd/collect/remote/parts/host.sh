# The machine around the GPUs.

facts_at=0 static_at=0

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

facts() {
    if [ "$up" -ge "$static_at" ]; then
        try 'uname -m >"$d/static"
            for n in CLK_TCK PAGESIZE _NPROCESSORS_ONLN; do echo "$n $(getconf $n)"; done >>"$d/static"
            { readlink /proc/self/ns/pid; cat /proc/self/uid_map; grep "^btime" /proc/stat; } >>"$d/static"
            read -r n </proc/sys/kernel/random/boot_id && echo "boot_id $n" >>"$d/static"
            [ -r /proc/1/stat ] || echo "hidepid 1" >>"$d/static"
            cat /etc/os-release >"$d/os"
            head -n 40 /proc/cpuinfo >"$d/cpu"'
        if [ $rc -eq 124 ]; then
            static_at=$((up + rest_seconds))
        else
            static_at=$((up + 3600))
            file facts.static 0 "$dir/static"
            file facts.os 0 "$dir/os"
            file facts.cpu 0 "$dir/cpu"
        fi
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
