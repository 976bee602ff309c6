#!/bin/sh
# Everything that needs a card, in one run: perf/card.sh BUILD OUT
#
# Runs the device tests of the build folder BUILD on the card, then nst-bench over all workloads, and leaves logs and
# results in OUT.
set -u
build=$1 out=$2
mkdir -p "$out"
export NST_DEVICE=card
failed=0

# The tests spend their time in the reference, on one core: the long ones in parts, and all at once.
parts=$(nproc)
run() { # TEST PART
  "$build/tests/device/test_$1" --part "$2/$parts" >"$out/$1.$2.log" 2>&1 &
  pids="${pids:-} $!"
}
for test in walk invariance; do
  for part in $(seq "$parts"); do run "$test" "$part"; done
done
for test in harness rows card; do
  "$build/tests/device/test_$test" >"$out/$test.log" 2>&1 &
  pids="$pids $!"
done
for pid in $pids; do wait "$pid" || failed=1; done
for test in walk invariance; do
  cat "$out/$test".[0-9]*.log >"$out/$test.log"
  rm "$out/$test".[0-9]*.log
done
for test in walk harness rows card invariance; do
  # cmocka lists skipped and failed tests again at the end, so its own sums count.
  awk -v test="$test" '/       OK \]/ { ok++ } /FAILED TEST\(S\)/ { bad += $1 } /SKIPPED TEST\(S\)/ { skipped += $1 }
    END { printf "test_%s: %d passed, %d failed, %d skipped\n", test, ok, bad, skipped }' "$out/$test.log"
  grep -v '^\[' "$out/$test.log" | head -n 20
done

"$build/nst-bench" --archive "$build/libnormstatic.a" --json "$out/bench.json" >"$out/bench.log" 2>&1 || failed=1
tail -n 90 "$out/bench.log"
exit $failed
