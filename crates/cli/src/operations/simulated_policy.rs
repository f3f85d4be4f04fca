//! Asks the policy simulator of IAM which actions the policies of a role do not allow.
//!
//! Separate because `doctor` simulates the roles of the functions, and both `check` and `doctor`
//! simulate the role that calls AWS targets. IAM evaluates the policies of the role, its
//! permissions boundary and the policies of the organization. It does not evaluate the policies of
//! queues, buckets and keys.

use anyhow::Context as _;
use aws_sdk_iam::Client;
use aws_sdk_iam::types::PolicyEvaluationDecisionType;

use crate::terminal::advice::aws_error;

/// The maximum number of concurrent simulations, because IAM has a low rate limit.
pub(crate) const AT_ONCE: usize = 4;

/// An IAM action that a role may not perform.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) action: String,
    /// True if a policy denies the action, false if no policy allows it.
    pub(crate) is_denied: bool,
}

/// Returns the actions in `actions` that a role may not perform on a resource. The policy simulator
/// of IAM decides.
///
/// # Errors
/// If IAM does not respond, or the role does not exist.
pub(crate) async fn refused(
    client: &Client,
    role: &str,
    actions: &[&str],
    arn: &str,
) -> anyhow::Result<Vec<Refused>> {
    let simulate = client.simulate_principal_policy().policy_source_arn(role);
    let actions = actions.iter().map(ToString::to_string).collect();
    let simulate = simulate.set_action_names(Some(actions)).resource_arns(arn);
    let answer = simulate.send().await.map_err(|error| aws_error(&error));
    let answer = answer.context("IAM cannot simulate the policy")?;
    let results = answer.evaluation_results.unwrap_or_default().into_iter();
    let refused =
        results.filter(|result| result.eval_decision != PolicyEvaluationDecisionType::Allowed);
    let refused = refused.map(|result| Refused {
        is_denied: result.eval_decision == PolicyEvaluationDecisionType::ExplicitDeny,
        action: result.eval_action_name,
    });
    Ok(refused.collect())
}
