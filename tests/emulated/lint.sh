#!/usr/bin/env bash
# lint.sh <build folder>: fails if the linters of SAM or CloudFormation report an error in template.yaml or
# infra/*.yaml.
set -euo pipefail
source "$(dirname "$0")/environment.sh"

cd "$root"
sam validate --lint --template-file template.yaml
for template in infra/*.yaml; do
  sam validate --lint --template-file "$template"
done
cfn-lint template.yaml infra/*.yaml scripts/smoke/receiver.yaml

# Gradual deployments have resources that SAM adds only where the parameter has a value.
mkdir -p "$build/gradual/infra"
cp infra/observability.yaml "$build/gradual/infra"
sed '/^  GradualDeployment:/,/Default/s/Default: ""/Default: linted/' template.yaml >"$build/gradual/template.yaml"
if cmp -s template.yaml "$build/gradual/template.yaml"; then
  echo "the default of GradualDeployment was not replaced" >&2
  exit 1
fi
cfn-lint "$build/gradual/template.yaml"
