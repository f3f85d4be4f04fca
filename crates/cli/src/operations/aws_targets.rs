//! Finds AWS targets that a deployment would refuse, before the subscriptions are deployed.
//!
//! Separate because `check`, `apply` and `doctor` compare subscriptions with a stack, but `try` and
//! `dev` compare them with the variable `AWS_TARGETS` of this machine. [`AwsPolicy`] of the core
//! decides whether a target is allowed; this module adds advice for the user.

use adapters::settings::AWS_TARGETS;
use anyhow::Context as _;
use delivery::subscription::Subscription;
use delivery::subscription::aws::policy::{AwsPolicy, AwsRefusal, AwsTargets, OwnResources};
use dialects::{Finding, Reading, Severity};

use crate::operations::locations::Locations;
use crate::operations::stack::Stack;
use crate::operations::writable::Problem;

/// The names of the stack outputs with the ARNs of functions.
const FUNCTIONS: [&str; 3] = ["DispatchFunctionArn", "DeadLetterFunctionArn", "IngressFunctionArn"];

/// The AWS targets that a deployment allows, and texts for errors about other targets.
pub(crate) struct TargetRules {
    policy: AwsPolicy,
    /// The name of the setting that lists the allowed targets, for messages.
    list: String,
    /// The setting in which the user can allow another target, for advice.
    place: &'static str,
}

impl TargetRules {
    /// Reads the allowed targets of a stack; without a stack, those in `AWS_TARGETS` of this
    /// machine. Returns `None` without a stack if the variable is unset.
    ///
    /// # Errors
    /// If the list is invalid.
    pub(crate) fn load(stack: Option<&Stack>) -> anyhow::Result<Option<Self>> {
        match stack {
            Some(stack) => Self::of_stack(stack).map(Some),
            None if std::env::var_os(AWS_TARGETS).is_none() => Ok(None),
            None => Self::of_variable("the environment variable AWS_TARGETS, as in the deployment")
                .map(Some),
        }
    }

    /// Reads the allowed targets of commands that send from this machine. If `AWS_TARGETS` is
    /// unset, no target is allowed.
    ///
    /// # Errors
    /// If the variable is invalid.
    pub(crate) fn here() -> anyhow::Result<Self> {
        Self::of_variable(
            "the environment variable AWS_TARGETS, and run the command again; requests are signed \
             with your own AWS credentials",
        )
    }

    fn of_variable(place: &'static str) -> anyhow::Result<Self> {
        let targets = AwsTargets::parse(&listed_here()).map_err(anyhow::Error::msg);
        let policy = AwsPolicy::new(targets.context(AWS_TARGETS)?, OwnResources::default(), None);
        Ok(Self { policy, list: AWS_TARGETS.to_owned(), place })
    }

    fn of_stack(stack: &Stack) -> anyhow::Result<Self> {
        let targets = AwsTargets::parse(stack.parameter("AwsTargets")).map_err(anyhow::Error::msg);
        let targets = targets.with_context(|| {
            format!("the parameter AwsTargets of the stack {} is invalid", stack.name)
        })?;
        let role = Some(stack.parameter("InvokeRoleArn")).filter(|arn| !arn.is_empty());
        Ok(Self {
            policy: AwsPolicy::new(targets, own_resources(stack)?, role),
            list: format!("AwsTargets of the stack {}", stack.name),
            place: "the parameter AwsTargets of the stack",
        })
    }

    /// Returns the problem if the AWS target of a subscription is not allowed. Returns `None` if
    /// the target is allowed, or the destination is not an AWS target.
    pub(crate) fn problem(&self, subscription: &Subscription) -> Option<Problem> {
        let target = subscription.destination.aws.as_deref()?;
        let refusal = self.policy.refusal(&subscription.name.topic.namespace, target)?;
        let name = &subscription.name;
        let (refused, help) = match &refusal {
            AwsRefusal::Own(arn) => (
                format!("{arn}, which belongs to the deployment itself"),
                "use a resource that does not belong to the stack".to_owned(),
            ),
            AwsRefusal::NotListed { arn, namespace } => (
                format!("{arn}, which {} does not list for the namespace {namespace}", self.list),
                format!("add {namespace}={arn} to {}", self.place),
            ),
            AwsRefusal::OtherAccount { arn, account } => (
                format!(
                    "{arn}, but Firehose finds streams only in the account of the role, {account}"
                ),
                format!(
                    "use a stream in {account}, or set InvokeRoleArn to a role of the other account"
                ),
            ),
        };
        Some(Problem::refused(format!("{name} delivers to {refused}"), help))
    }
}

/// Returns the value of `AWS_TARGETS` on this machine; empty if it is unset.
pub(crate) fn listed_here() -> String {
    std::env::var(AWS_TARGETS).unwrap_or_default()
}

/// Returns a warning for each subscription with a forbidden AWS target. The variable `AWS_TARGETS`
/// of this machine lists the allowed targets.
///
/// # Errors
/// If the variable is invalid.
pub(crate) fn refused_here(reading: &Reading) -> anyhow::Result<Vec<Finding>> {
    let rules = TargetRules::here()?;
    let at = Locations { reading, first: "" };
    let found = reading.catalogue.subscriptions().filter_map(|subscription| {
        let problem = rules.problem(subscription)?;
        let problem = Problem { severity: Severity::Warning, ..problem };
        Some(at.finding(subscription, "aws", problem))
    });
    Ok(found.collect())
}

/// Returns the ARNs of the queues and functions of a stack. Its buckets and its table are omitted,
/// because no target can be in S3 or DynamoDB.
fn own_resources(stack: &Stack) -> anyhow::Result<OwnResources> {
    let named = stack.own_queues().filter_map(|url| url.rsplit('/').next());
    let queues = named.filter_map(|name| Some(format!("{}:{name}", stack.arn_of("sqs")?)));
    let functions = FUNCTIONS.iter().filter_map(|name| stack.output(name).ok());
    let arns: Vec<String> = queues.chain(functions.map(ToOwned::to_owned)).collect();
    OwnResources::parse(&arns.join(",")).map_err(anyhow::Error::msg)
}

#[cfg(test)]
mod tests {
    use dialects::{Severity, Source};

    use super::*;

    const QUEUE: &str = "arn:aws:sqs:eu-west-1:123456789012:shop-orders";

    fn problem(arn: &str, action: &str, targets: &str) -> Option<Problem> {
        let text = format!(
            "apiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {{namespace: shop, topic: t, name: s}}\n\
             spec: {{destination: {{aws: {{arn: '{arn}', action: {action}}}}}}}\n"
        );
        let reading = dialects::read(&[Source { name: "f", text: &text }]);
        let subscription = reading.catalogue.subscriptions().next().expect("it is valid");
        let parameters =
            [("AwsTargets", targets), ("InvokeRoleArn", "arn:aws:iam::123456789012:role/invoke")];
        let function = "arn:aws:lambda:eu-west-1:123456789012:function:live-DispatchFunction-1";
        let outputs = [
            ("RetryQueueUrl", "https://sqs.eu-west-1.amazonaws.com/123456789012/live-RetryQueue"),
            ("DispatchFunctionArn", function),
        ];
        let stack = Stack::sample(&parameters, &outputs);
        TargetRules::load(Some(&stack)).unwrap().expect("rules").problem(subscription)
    }

    #[test]
    fn a_target_is_allowed_where_the_stack_lists_it_for_the_namespace() {
        for targets in [format!("shop={QUEUE}"), "*=arn:aws:sqs:*:*:shop-*".to_owned()] {
            assert_eq!(problem(QUEUE, "SendMessage", &targets), None, "{targets}");
        }
    }

    #[test]
    fn an_unlisted_a_foreign_and_an_own_target_are_errors_that_say_what_to_do() {
        let all = "*=arn:aws:*:*:*:*";
        let foreign = "arn:aws:sqs:eu-west-1:999999999999:shop-orders";
        let own = "arn:aws:sqs:eu-west-1:123456789012:live-RetryQueue";
        let alias = "arn:aws:lambda:eu-west-1:123456789012:function:live-DispatchFunction-1:live";
        let stream = "arn:aws:firehose:eu-west-1:999999999999:deliverystream/all";
        let of_account = "*=arn:aws:sqs:*:123456789012:*";
        for (arn, action, targets, message, help) in [
            (
                QUEUE,
                "SendMessage",
                "",
                "does not list for the namespace shop",
                "add shop=arn:aws:sqs",
            ),
            (QUEUE, "SendMessage", "bank=arn:aws:sqs:*:*:*", "for the namespace shop", "add shop="),
            (foreign, "SendMessage", of_account, "AwsTargets of the stack live", "add shop="),
            (
                own,
                "SendMessage",
                all,
                "belongs to the deployment itself",
                "does not belong to the stack",
            ),
            (
                alias,
                "Invoke",
                all,
                "belongs to the deployment itself",
                "does not belong to the stack",
            ),
            (stream, "PutRecord", all, "streams only in the account of the role", "123456789012"),
        ] {
            let problem = problem(arn, action, targets).expect(arn);
            assert_eq!(problem.severity, Severity::Error);
            assert!(problem.message.starts_with(&format!("shop/t/s delivers to {arn}, ")));
            assert!(problem.message.contains(message), "{problem:?}");
            assert!(problem.help.as_ref().is_some_and(|text| text.contains(help)), "{problem:?}");
        }
    }
}
