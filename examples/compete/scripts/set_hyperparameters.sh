#!/bin/bash
# set_hyperparameters.sh DATASET --experience_number N: writes the settings that run_pipeline.sh reads.
set -e
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
mkdir -p "$root/experiments/$1"
echo "experience_number=$3" > "$root/experiments/$1/hyperparameters"
