# NVIDIA GPUs. With one that is lost the others are asked by name, and only now and then all.

fields='' fields_text='' uuids='' has_slices='' gpu_count=0 healthy='' lost='' nvidia_at=0 whole_at=0
log_apps='' log_pids='' log_at=0

# What can be asked with --query-gpu; the first of several names that this nvidia-smi knows. As in query.py.
candidates='index uuid name pci.bus_id driver_version compute_cap mig.mode.current memory.total memory.reserved
memory.used utilization.gpu utilization.memory utilization.encoder utilization.decoder temperature.gpu power.draw
enforced.power.limit|power.limit power.default_limit fan.speed clocks.current.sm|clocks.sm
clocks.current.memory|clocks.mem clocks.max.sm pstate clocks_event_reasons.active|clocks_throttle_reasons.active
ecc.errors.corrected.volatile.total ecc.errors.uncorrected.volatile.total retired_pages.pending remapped_rows.pending
remapped_rows.failure gpu_recovery_action'

choose_fields() {
    known=' ' count=0
    while [ $count -lt 4096 ] && IFS='"' read -r before one_name _ other_name _; do
        count=$((count + 1))
        [ -n "$before" ] || known="$known$one_name $other_name "
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
    block nvidia.gpus 124 "nvidia-smi did not finish within $deadline s"
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
        block nvidia.gpus 124 "nvidia-smi did not finish within $deadline s and is now run less often"
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
    some='' is_plain='' slices=''
    [ "$up" -ge "$whole_at" ] || some=$healthy
    # Many GPUs without slices: looked at only now and then, as a shell reads byte by byte.
    [ -z "$some$has_slices" ] && [ $gpu_count -gt 3 ] && [ $((number % 10)) -ne 0 ] && is_plain=1
    forget gpus apps
    for _ in 1 2 3 4 5 6 7 8; do
        try "$query" "$fields" "${some:+--id=$some}"
        [ $rc -ne 124 ] || { nvidia_hung && return; }
        status gpus
        [ "$status$is_plain" = 01 ] && break
        slurp gpus
        case $text in *'Field "'*'" is not a valid field'*) drop_field || break ;; *) break ;; esac
    done
    [ -z "$fields_text" ] || block nvidia.fields 0 "$fields_text"
    fields_text=''
    if [ -n "$some" ]; then
        [ "$status" -eq 0 ] || whole_at=0
        block nvidia.gpus 15 "$lost"
        block nvidia.some "$status" "$text"
    elif [ "$status$is_plain" = 01 ]; then
        file nvidia.gpus 0 "$dir/gpus"
    elif [ "$status" -eq 0 ]; then
        healthy=''
        block nvidia.gpus 0 "$text"
        learn_gpus
        slices=$has_slices
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
    [ -z "$slices" ] || nvidia_slices
}

# The log is costly: only when a process or its memory has changed, and once a minute in case the layout has.
nvidia_slices() {
    if [ "$text" != "$log_apps" ] || [ "$up" -ge "$log_at" ]; then
        log_apps=$text log_at=$((up + 60))
        nvidia_log
    else
        for pid in $log_pids; do add_pid "$pid"; done
    fi
}

learn_gpus() {
    uuids='' has_slices='' gpu_count=0
    IFS=$nl
    for line in $text; do
        gpu_count=$((gpu_count + 1))
        case $line in *', Enabled,'*) has_slices=1 ;; esac
        line=${line#*, }
        add_uuid "${line%%,*}"
    done
    unset IFS
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
    log_pids=''
    if [ $rc -eq 124 ]; then
        nvidia_stuck=$stuck nvidia_at=$((up + rest_seconds)) log_at=0
        block nvidia.log 124 ''
        return
    fi
    status log
    [ "$status" -eq 0 ] || log_at=0
    file nvidia.log "$status" "$dir/log.xml"
    status list
    file nvidia.list "$status" "$dir/list"
    while read -r pid; do
        log_pids="$log_pids $pid"
        add_pid "$pid"
    done <"$dir/log.pids"
}
