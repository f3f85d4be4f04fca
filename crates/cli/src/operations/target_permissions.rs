//! Asks the policy simulator of IAM whether the stack's role may call the AWS targets.
//!
//! Separate because `check --stack` and `doctor` both report the result. The simulation does not
//! include the target's own policy, which may allow a call that no policy of the role allows.
//! Therefore, only an explicit denial is an error.

use std::borrow::Cow;
use std::collections::BTreeMap;

use aws_sdk_iam::Client;
use delivery::subscription::catalogue::Catalogue;
use delivery::subscription::name::SubscriptionName;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};

use crate::operations::simulated_policy::{AT_ONCE, refused};
use crate::operations::stack::Stack;
use crate::operations::writable::Problem;

/// The maximum number of targets whose permissions are simulated, because IAM has a low rate limit.
const TARGETS_MAX: usize = 200;

/// The permission and the ARN of each target, with a subscription that uses the target.
type Needs<'c> = BTreeMap<(&'static str, Cow<'c, str>), &'c SubscriptionName>;

/// The result of simulating the permissions for AWS targets.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Simulated {
    /// The number of targets whose permissions were simulated.
    pub(crate) asked: usize,
    /// The number of targets that exceed the limit, and whose permissions were not simulated.
    pub(crate) left: usize,
    /// The targets that the role may not call: for each, the first subscription and the problem.
    pub(crate) refused: Vec<(SubscriptionName, Problem)>,
}

/// Simulates the permission for each target of these subscriptions. The result is empty if the
/// stack has no role for targets.
///
/// # Errors
/// If IAM does not respond.
pub(crate) async fn simulated(
    client: &Client,
    stack: &Stack,
    catalogue: &Catalogue,
) -> anyhow::Result<Simulated> {
    let role = stack.parameter("InvokeRoleArn");
    let needs = needs(catalogue);
    if role.is_empty() || needs.is_empty() {
        return Ok(Simulated::default());
    }
    let left = needs.len().saturating_sub(TARGETS_MAX);
    let asked = needs.len() - left;
    let ask =
        stream::iter(needs.into_iter().take(TARGETS_MAX)).map(|((action, arn), name)| async move {
            let answer = refused(client, role, &[action], &arn).await?;
            let problem = answer
                .into_iter()
                .next()
                .map(|refusal| problem(name, action, &arn, refusal.is_denied));
            anyhow::Ok(problem.map(|problem| (name.clone(), problem)))
        });
    let answers: Vec<_> = ask.buffered(AT_ONCE).try_collect().await?;
    Ok(Simulated { asked, left, refused: answers.into_iter().flatten().collect() })
}

fn needs(catalogue: &Catalogue) -> Needs<'_> {
    let with_target = catalogue.subscriptions().filter_map(|subscription| {
        let target = subscription.destination.aws.as_deref()?;
        Some(((target.iam_action(), target.resource()), &subscription.name))
    });
    // Several subscriptions may have the same target; report the first one.
    with_target.fold(Needs::new(), |mut needs, (need, name)| {
        needs.entry(need).or_insert(name);
        needs
    })
}

fn problem(name: &SubscriptionName, action: &str, arn: &str, is_denied: bool) -> Problem {
    let message = |why| format!("{name} requires {action} on {arn}, but {why}");
    if is_denied {
        let help = "remove the denial in a policy of the role, its boundary or the organization";
        return Problem::refused(
            message("a policy denies it to the role InvokeRoleArn"),
            help.to_owned(),
        );
    }
    let help = "allow it in a policy of the role, unless a policy of the target allows it";
    Problem {
        help: Some(help.to_owned()),
        ..Problem::warning(message("no policy of the role InvokeRoleArn allows it"))
    }
}

#[cfg(test)]
mod tests {
    use dialects::{Severity, Source};

    use super::*;

    #[test]
    fn each_target_is_asked_about_once_with_the_permission_of_its_service() {
        let document = |name: &str, aws: &str| {
            format!(
                "apiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {{namespace: n, topic: t, name: {name}}}\n\
                 spec: {{destination: {aws}}}\n"
            )
        };
        let queue = "{aws: {arn: 'arn:aws:sqs:eu-west-1:123456789012:q', action: SendMessage}}";
        let function =
            "{aws: {arn: 'arn:aws:lambda:eu-west-1:123456789012:function:f', action: Invoke}}";
        let text = [
            document("a", queue),
            document("b", queue),
            document("c", function),
            document("d", "{url: 'https://d.example.com/'}"),
        ];
        let reading = dialects::read(&[Source { name: "f", text: &text.join("---\n") }]);
        let needs = needs(&reading.catalogue);
        let found: Vec<_> = needs
            .iter()
            .map(|((action, arn), name)| (*action, arn.as_ref(), name.name.as_str()))
            .collect();
        let expected = [
            ("lambda:InvokeFunction", "arn:aws:lambda:eu-west-1:123456789012:function:f", "c"),
            ("sqs:SendMessage", "arn:aws:sqs:eu-west-1:123456789012:q", "a"),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn only_what_a_policy_denies_is_an_error() {
        let name = "n/t/s".parse().unwrap();
        let report = |is_denied| problem(&name, "sns:Publish", "arn:aws:sns:a:1:t", is_denied);
        assert_eq!(
            (report(true).severity, report(false).severity),
            (Severity::Error, Severity::Warning)
        );
    }
}
