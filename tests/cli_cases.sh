# cli_cases.sh: what the shell tests of the program share: a scratch folder, a counter, and `expect`, which
# runs the program and checks its exit code and a part of what it says.
set -u
program=$(realpath "$1")
[ -x "$program" ] || { echo "$program is not a program" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
# The machine's own data sets and settings must not decide a test.
unset LATENT_DATA NO_COLOR
export HOME=$folder/home XDG_CACHE_HOME=$folder/cache
cases=0
failures=0
output=

pass() {
    cases=$((cases + 1))
    echo "ok    $1"
}

fail() {
    cases=$((cases + 1))
    failures=$((failures + 1))
    echo "FAIL  $1"
    [ -z "${2-}" ] || sed 's/^/      | /' <<<"$2"
}

# expect WHAT CODE PART ARGUMENTS...: the program must end with CODE and say PART (a fixed string; "" is any).
expect() {
    local what=$1 code=$2 part=$3 got=0
    shift 3
    output=$("$program" "$@" 2>&1) || got=$?
    if [ "$got" != "$code" ]; then
        fail "$what" "exit code $got, not $code: latent $*
$output"
    elif [ -n "$part" ] && ! grep -qF -- "$part" <<<"$output"; then
        fail "$what" "'$part' is not in what it says: latent $*
$output"
    else
        pass "$what"
    fi
}

# holds WHAT COMMAND...: the command must succeed.
holds() {
    local what=$1 said
    shift
    if said=$("$@" 2>&1); then
        pass "$what"
    else
        fail "$what" "failed: $*
$said"
    fi
}

# A net of 113 parameters that trains in no time.
tiny_net() {
    cat >"$1" <<'NET'
input 32x32x3
conv enc 2 3x3 relu pool2
latent
conv dec 3 3x3 up2
loss mse
train epochs 2 batch 16 optimizer adam lr 3e-3
NET
}

finish() {
    echo "$cases cases, $failures failed"
    [ "$failures" = 0 ]
}
