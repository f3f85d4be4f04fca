#!/usr/bin/env bash
# serve.sh <build folder> <port> [<port that functions call>]: runs the emulated AWS, which enforces permissions, on
# 127.0.0.1:<port> until our standard input is closed. Functions call it on the same port, or on that of a gateway.
# However the tests end, even killed, the operating system closes that pipe, so nothing is left running.
set -euo pipefail
source "$(dirname "$0")/environment.sh"

export GATEWAY_PORT=$2 BIND_HOST=127.0.0.1 MINISTACK_HOST=127.0.0.1
export AWS_ENDPOINT_URL=http://127.0.0.1:${3:-$2}
# That of AWS, unless a test has a smaller account; the emulator would compute one from the memory of this machine.
export LAMBDA_ACCOUNT_CONCURRENCY=${LAMBDA_ACCOUNT_CONCURRENCY:-1000}

# Job control gives the background job its own process group, which includes the function processes that it starts.
set -m
python "$here/serve.py" "$build/calls.log" >"$build/ministack.log" 2>&1 </dev/null &
server=$!
trap 'kill -KILL -- "-$server" 2>/dev/null || true' EXIT

cat >/dev/null
