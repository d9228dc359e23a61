#!/usr/bin/env bash
# The same for any program that saves when it is told to end: a new list ends it, and it begins again on the new cards.
again=1
trap 'again=1; kill -TERM "$child"' USR1  # a new list
trap 'again=0; kill -TERM "$child"' TERM  # the end
while [ "$again" = 1 ]; do
    again=0
    CUDA_VISIBLE_DEVICES=$(head -n 1 "$JOSTLE_GPUS_FILE") "$@" &
    child=$!
    while kill -0 "$child" 2>/dev/null; do wait "$child"; code=$?; done
done
exit "$code"
