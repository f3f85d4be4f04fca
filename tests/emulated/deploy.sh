#!/usr/bin/env bash
# deploy.sh <build folder> <port> <Parameter=Value>…: deploys to the emulated AWS on that port what package.sh made, or the
# folder of a release for this processor, LASTMILE_RELEASE. The stack is called lastmile, or LASTMILE_DEPLOYED_AS. Prints
# its outputs as one JSON object on standard output. All other output goes to standard error.
set -euo pipefail
source "$(dirname "$0")/environment.sh"

export AWS_ENDPOINT_URL=http://127.0.0.1:$2
# The emulated deployment ends at once; polling every five seconds, the default, would take most of the time.
export SAM_CLI_POLL_DELAY=0.2

stack=${LASTMILE_DEPLOYED_AS:-lastmile}

# A release needs no cargo.
export PATH=$venv/bin:/usr/bin:/bin

parameters=()
[ $# -lt 3 ] || parameters=(--parameter-overrides "${@:3}")
sam deploy \
  --template-file "${LASTMILE_RELEASE:-$build/release}/template.yaml" \
  --stack-name "$stack" \
  --resolve-s3 \
  --capabilities CAPABILITY_IAM \
  --no-confirm-changeset \
  "${parameters[@]}" >&2

python "$here/stack.py" "$stack"
