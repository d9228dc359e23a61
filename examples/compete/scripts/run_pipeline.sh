#!/bin/bash
# run_pipeline.sh DATASET [--uni_id ID]: trains on one data set.
# With --uni_id it tells the scheduler which process works and how it ended; without, it just runs.
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
dataset="$1"
uni_id=""
[ "$2" = "--uni_id" ] && uni_id="$3"
log="$here/../experiments/$dataset/train.log"
mkdir -p "$(dirname "$log")"

# report STATE PID [ERROR_TYPE]: a line in the file that the scheduler watches ($JOSTLE_UNI_ID_FILE)
report() {
    [ -n "$uni_id" ] || return 0
    jostle uni-id set "$uni_id" --state "$1" --pid "$2" ${3:+--error-type "$3"}
}

python3 "$here/train.py" "$dataset" > "$log" 2>&1 &
pid=$!
report running "$pid"
wait "$pid"
code=$?
cat "$log"

if [ "$code" -eq 0 ]; then
    report normal_exit "$pid"
elif grep -qiE "out of memory|\boom\b" "$log"; then
    report abnormal_exit "$pid" oom
elif grep -qiE "RuntimeError|runtime error" "$log"; then
    report abnormal_exit "$pid" runtime_error
else
    report abnormal_exit "$pid" unknown
fi
exit "$code"
