# How long a command that hung is left alone, and a lost GPU too.
rest_seconds=$((6 * ${deadline%%.*} + 1))

# Long intervals in pieces, so that the end of the link is noticed soon.
pieces=0 pause_seconds=$interval
if [ "${interval%%.*}" -gt 15 ]; then
    pieces=$((${interval%%.*} / 10 - 1))
    pause_seconds=$((${interval%%.*} - pieces * 10))
fi

out="${mark}start 1$nl" number=0
while :; do
    sleep "$pause_seconds" >/dev/null &
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
