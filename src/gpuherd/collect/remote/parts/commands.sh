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
# file NAME STATUS FILE: a block as it lies on disk; of a failure only the first words, without a file nothing.
file() {
    flush
    [ -f "$3" ] || : >"$3"
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
