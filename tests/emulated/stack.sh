#!/usr/bin/env bash
# stack.sh <build folder> <port> <stack>: prints the outputs of a stack on the emulated AWS on that port, as one JSON object.
set -euo pipefail
source "$(dirname "$0")/environment.sh"

export AWS_ENDPOINT_URL=http://127.0.0.1:$2

python "$here/stack.py" "$3"
