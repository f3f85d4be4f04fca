//! Asks IAM which actions the policies of a role do not allow, by simulation.
//!
//! Separate because `doctor` asks it of the roles of the functions, and `check` and `doctor` ask it of the role that makes
//! requests to services of AWS. IAM evaluates the policies of the role, its boundary and those of the organization. It evaluates
//! no policy of a queue, a bucket or a key.

use anyhow::Context as _;
use aws_sdk_iam::Client;
use aws_sdk_iam::types::PolicyEvaluationDecisionType;

use crate::terminal::advice::aws_error;

/// Simulations at once: IAM allows few calls a second.
pub(crate) const AT_ONCE: usize = 4;

/// An action that a role may not do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) action: String,
    /// True if a policy denies it, false if none allows it.
    pub(crate) is_denied: bool,
}

/// Simulates these actions of a role on a resource, and returns those that its policies do not allow.
///
/// # Errors
/// When IAM does not answer, or does not know the role.
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
    let answer = answer.context("IAM simulates no policy")?;
    let results = answer.evaluation_results.unwrap_or_default().into_iter();
    let refused = results.filter(|it| it.eval_decision != PolicyEvaluationDecisionType::Allowed);
    let refused = refused.map(|it| Refused {
        is_denied: it.eval_decision == PolicyEvaluationDecisionType::ExplicitDeny,
        action: it.eval_action_name,
    });
    Ok(refused.collect())
}
