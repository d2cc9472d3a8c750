# AMD GPUs: amd-smi, else rocm-smi.

amd_at=0 amd_static_at=0 rocm_options=''
rocm_most='--showid --showuniqueid --showserial --showproductname --showbus --showuse --showmemuse --showmeminfo vram
--showtemp --showpower --showmaxpower --showfan --showclocks --showpids --showdriverversion'

amd_hung() {
    amd_stuck=$stuck
    amd_at=$((up + rest_seconds))
    block "$1" 124 "the command did not finish within $deadline s"
}

amd_waits() {
    if [ -n "$amd_stuck" ] && kill -0 "$amd_stuck"; then
        block "$1" 124 "an earlier command (pid $amd_stuck) still hangs in the driver"
        return
    fi
    amd_stuck=''
    [ "$up" -lt "$amd_at" ] || return 1
    block "$1" 124 "the command did not finish within $deadline s and is now run less often"
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
