#!/usr/bin/env bash
# deploy.sh <build folder> <port> <Parameter=Value>…: deploys what build.sh built to the emulated AWS on that port
# and prints the outputs of the stack as one JSON object on standard output. All other output goes to standard error.
set -euo pipefail
source "$(dirname "$0")/environment.sh"

export AWS_ENDPOINT_URL=http://127.0.0.1:$2
# The emulated deployment ends at once; polling every five seconds, the default, would take most of the time.
export SAM_CLI_POLL_DELAY=0.2

sam deploy \
  --template-file "$build/sam/template.yaml" \
  --stack-name lastmile \
  --resolve-s3 \
  --capabilities CAPABILITY_IAM \
  --no-confirm-changeset \
  --parameter-overrides "Architecture=$architecture" "${@:3}" >&2

python "$here/stack.py" lastmile
