#!/usr/bin/env bash
# Progress: a bar that redraws its line on a terminal, colour unless NO_COLOR, plain lines everywhere else.
command -v script >/dev/null || exit 77
. "$(dirname "$0")/cli_cases.sh"
cat >slow.net <<'NET'
input 32x32x3
conv enc 16 3x3 relu pool2
conv mid 16 3x3 relu
latent
conv dec 3 3x3 up2
loss mse
train epochs 2 batch 8
NET
holds "a small data set is made" "$program" data synth data --train 320 --test 10 --quiet
escape=$(printf '\033')
return=$(printf '\r')
# on_terminal FILE SETTINGS...: trains with stderr on a terminal of script's making; what it shows goes to FILE.
on_terminal() {
    local to=$1
    shift
    script -qec "stty cols 100; env $* '$program' train slow.net --run run --overwrite --backend ref" /dev/null \
        >"$to" </dev/null
}
on_terminal colour TERM=xterm LANG=C.UTF-8
on_terminal plain TERM=xterm NO_COLOR=1 LANG=C
on_terminal dumb TERM=dumb
"$program" train slow.net --run run --overwrite --backend ref >out.txt 2>err.txt
"$program" train slow.net --run run --overwrite --backend ref --quiet >/dev/null 2>quiet.txt

holds "a terminal gets a bar that redraws its line" grep -qF "${return}epoch 1/2 " colour
frames=$(tr '\r' '\n' <colour | grep -cE 'epoch [12]/2 .*%.*loss [0-9.]+  [0-9.,]+ images/s  ETA [0-9:]+')
holds "with loss, images/s and ETA, more than once: $frames times" [ "$frames" -ge 2 ]
widest=$(tr '\r' '\n' <plain | sed "s/$escape\[[0-9;]*[A-Za-z]//g" | grep 'ETA' | awk '{ print length }' | sort -n | tail -1)
holds "no frame is wider than the terminal: $widest" [ "${widest:-1000}" -lt 100 ]
holds "in colour" grep -qF "$escape[32m" colour
holds "without colour under NO_COLOR" bash -c "! grep -qF '$escape[3' plain && ! grep -qF '$escape[1m' plain"
holds "but still with a bar" grep -qF "${return}epoch 1/2 =" plain
holds "a dumb terminal gets plain lines" bash -c "! grep -qF '$escape' dumb"
holds "a file gets no escapes" bash -c "! grep -qF '$escape' err.txt && ! grep -qF '$return' err.txt"
holds "but a line per epoch" [ "$(grep -c '^epoch [12]/2  loss .*forward .*backward .*optimizer' err.txt)" = 2 ]
holds "results are on stdout alone" bash -c "grep -q '^loss' out.txt && ! grep -q '^loss' err.txt"
holds "epoch lines are on stderr alone" bash -c "! grep -q epoch.1/2 out.txt"
holds "--quiet shows nothing but warnings" bash -c "! grep -v warning quiet.txt"
finish
