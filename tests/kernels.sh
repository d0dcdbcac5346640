#!/bin/sh
# The suite as other processors would run it: with the kernels of older ones, with one and two threads, and with
# rounding that changes from call to call. Arguments go to pytest: tests/kernels.sh tests/test_lm.py -x
# Settings the processor cannot follow are ignored by the libraries that read them.

cd "$(dirname "$0")/.." || exit 1
python=${PYTHON:-.venv/bin/python}
failed=0
export OMP_WAIT_POLICY=PASSIVE # threads that wait busily starve the others where cores are few

run() { # threads, setting, pytest's arguments
    threads=$1 setting=$2
    shift 2
    echo "== $threads threads, ${setting:-plain} $*"
    env OMP_NUM_THREADS="$threads" ${setting:+"$setting"} "$python" -m pytest "$@" || failed=$((failed + 1))
}

for threads in 1 2; do
    for setting in "" ONEDNN_MAX_CPU_ISA=SSE41 ONEDNN_MAX_CPU_ISA=AVX2 ONEDNN_MAX_CPU_ISA=AVX512_CORE \
        ATEN_CPU_CAPABILITY=default ATEN_CPU_CAPABILITY=avx2 MKL_CBWR=COMPATIBLE; do
        run "$threads" "$setting" "$@"
    done
done
run 1 "" -p tests.rounding "$@"

echo "== runs with failures: $failed"
[ "$failed" -eq 0 ]
