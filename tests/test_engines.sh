#!/usr/bin/env bash
# The ladder over all engines when some of them fail, and what is said of options that an engine does not have.
. "$(dirname "$0")/cli_cases.sh"
tiny_net tiny.net
silent() { # silent FILE: what the latest command must have left
    [ ! -s "$1" ]
}
says_nothing_of() { # says_nothing_of PART: in the latest output
    ! grep -qF -- "$1" <<<"$output"
}
gpu=0
"$program" info | grep -qE '^ *cuda +available' && gpu=1

# ---- options ----
expect "a host backend has no devices" 1 "has no devices (3 was asked for, --device)" bench train tiny.net --backend ref --device 3
expect "and nothing to stream" 1 "nothing to stream (--stream-data)" bench train tiny.net --backend ref --stream-data
if [ $gpu = 0 ]; then
    for option in "--kernels basic" "--stream-data" "--device 1"; do
        # shellcheck disable=SC2086
        expect "$option asks for the GPU, and why there is none is told" 1 "the backend 'cuda' " bench train tiny.net $option
        holds "not what the host lacks" says_nothing_of "the backend 'cpu' "
    done
fi
"$program" selftest tiny.net --backend ref --device 3 >rows.txt 2>why.txt
holds "a selftest that cannot begin prints no table" silent rows.txt
holds "but the reason" grep -qF "has no devices" why.txt
expect "a selftest names the other engine" 0 "compared with the backend '" selftest tiny.net --backend ref --images 64

# ---- the ladder ----
if [ $gpu = 1 ]; then
    expect "a device that does not exist" 2 "device 1023 does not exist" bench ladder tiny.net --device 1023
else
    expect "a device that does not exist" 1 "the backend 'cuda' " bench ladder tiny.net --device 1023
fi
holds "is refused before the first rung" says_nothing_of "measuring"

if "$program" info | grep -qE '^ *cpu +available' && ! ldd "$program" | grep -qE 'asan|tsan'; then
    # The stacks of a thousand threads leave the cpu backend no memory; the reference has none.
    (ulimit -v 200000 && "$program" bench ladder tiny.net --seconds 0.1 --batch 8 --threads 1024 >table.txt 2>notes.txt)
    holds "a rung without memory is no failure" [ $? = 0 ]
    holds "it is left out with its reason" grep -qF "left out: no memory for a block of" notes.txt
    holds "the next ones are tried" grep -qF "measuring cuda basic" notes.txt
    holds "the others are in the table" grep -qE '^ref ' table.txt
    holds "without it" eval '! grep -qE "^cpu " table.txt'
    holds "and in the file" grep -qF '"backend": "ref"' ladder.json
    (ulimit -v 200000 && "$program" bench ladder tiny.net --batch 65536 --out none.json >none.txt 2>&1)
    holds "a ladder without a rung is a failure" [ $? = 1 ]
    holds "which says so" grep -qF "no rung was measured" none.txt
    holds "and writes nothing" [ ! -e none.json ]
fi

"$program" bench ladder tiny.net --seconds 60 --batch 8 --out cut.json >cut.txt 2>notes.txt &
other=$!
for _ in $(seq 100); do
    grep -qF "measuring ref" notes.txt && break
    sleep 0.1
done
sleep 1.5
kill -INT $other
wait $other
holds "an interrupted ladder says so" [ $? = 130 ]
holds "what it had is printed" grep -qE '^ref ' cut.txt
holds "and saved" grep -qF '"backend": "ref"' cut.json

echo old >kept.json
"$program" bench ladder tiny.net --seconds 60 --batch 8 --out kept.json >cut.txt 2>notes.txt &
other=$!
sleep 2
kill -INT $other
wait $other
holds "a ladder that broke off leaves an older one" grep -qx old kept.json
expect "a file that cannot be written" 1 "no/such/file: cannot" bench ladder tiny.net --batch 8 --out no/such/file
holds "is refused before the first rung" says_nothing_of "measuring"
"$program" bench ladder tiny.net --seconds 0.1 --batch 8 --json --out /dev/stdout >one.txt 2>notes.txt
holds "JSON to stdout is printed once" [ "$(grep -c '"rungs"' one.txt)" = 1 ]
finish
