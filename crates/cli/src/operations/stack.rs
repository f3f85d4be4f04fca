//! Reads the parameters and outputs of a deployed CloudFormation stack.
//!
//! Separate because `apply`, `check`, `rollback` and `try` all have an option that names a stack.
//!
//! Promises: a missing parameter or output is an error that names it. Requests are not retried,
//! because a person can run the command again.

#[cfg(feature = "aws")]
mod description;

use std::collections::BTreeMap;

use adapters::live_topics::Location;
use adapters::table::DynamoTable;
use anyhow::Context as _;
use aws_config::{BehaviorVersion, SdkConfig};
use aws_sdk_sqs::types::QueueAttributeName;
use delivery::address::PrivateDestinations;
use delivery::time::duration::SECOND_MS;
use local::http_client::http_client;
use url::Url;

use crate::operations::queues::{self, QUEUES, Share};
use crate::terminal::advice::aws_error;

/// The prefix of the subscriptions in the config bucket, as the template defines it.
const SUBSCRIPTIONS: &str = "subscriptions/";

/// The maximum number of concurrent invocations of a provisioned event poller.
/// <https://docs.aws.amazon.com/lambda/latest/dg/invocation-eventsourcemapping.html>
pub(crate) const POLLER_INVOCATIONS: u32 = 10;

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Stack {
    pub(crate) name: String,
    arn: String,
    parameters: BTreeMap<String, String>,
    outputs: BTreeMap<String, String>,
}

/// Reads the AWS configuration of the environment.
pub(crate) async fn aws() -> SdkConfig {
    aws_config::defaults(BehaviorVersion::latest()).http_client(http_client()).load().await
}

impl Stack {
    /// Returns an error, because this build has no client for CloudFormation.
    #[cfg(not(feature = "aws"))]
    pub(crate) async fn describe(_name: &str) -> anyhow::Result<Self> {
        Err(built_without_aws())
    }

    /// Returns the value of a parameter; empty if the parameter does not exist.
    pub(crate) fn parameter(&self, name: &str) -> &str {
        self.parameters.get(name).map_or("", String::as_str)
    }

    /// Returns the location from which the stack's functions read the subscriptions.
    pub(crate) fn subscriptions(&self) -> anyhow::Result<Location> {
        let name = self.output("ConfigBucketName")?.to_owned();
        Ok(Location::Bucket { name, prefix: SUBSCRIPTIONS.to_owned() })
    }

    /// Returns the table that the stack's functions share.
    pub(crate) async fn table(&self) -> anyhow::Result<DynamoTable> {
        Ok(DynamoTable::new(&aws().await, self.output("TableName")?.to_owned()))
    }

    /// Returns the approximate number of messages in the queue whose URL is in this output. The
    /// number includes messages for all subscriptions, because SQS cannot filter messages.
    pub(crate) async fn messages_in(&self, output: &str) -> anyhow::Result<u64> {
        let url = self.output(output)?;
        let ask = aws_sdk_sqs::Client::new(&aws().await).get_queue_attributes().queue_url(url);
        let counts = [
            QueueAttributeName::ApproximateNumberOfMessages,
            QueueAttributeName::ApproximateNumberOfMessagesDelayed,
            QueueAttributeName::ApproximateNumberOfMessagesNotVisible,
        ];
        let answer = ask.set_attribute_names(Some(counts.to_vec())).send().await;
        let answer = answer.map_err(|error| aws_error(&error));
        let answer =
            answer.with_context(|| format!("the messages of the queue {url} cannot be counted"))?;
        let counted = answer.attributes.unwrap_or_default();
        Ok(counted.values().filter_map(|count| count.parse::<u64>().ok()).sum())
    }

    /// Returns the values of a list parameter; empty if the parameter does not exist.
    pub(crate) fn list(&self, name: &str) -> impl Iterator<Item = &str> {
        self.parameter(name).split(',').map(str::trim).filter(|value| !value.is_empty())
    }

    /// Returns the ARNs of the dead-letter sinks outside the stack to which the stack's functions
    /// may write. An ARN may contain wildcards.
    pub(crate) fn extra_sinks(&self) -> impl Iterator<Item = &str> {
        self.list("ExtraSinkArns")
    }

    /// Returns the bucket of the stack's default container.
    pub(crate) fn dead_letter_bucket(&self) -> Option<&str> {
        self.outputs.get("DeadLetterBucketName").map(String::as_str)
    }

    /// Returns the address of the stack's default container.
    ///
    /// # Errors
    /// If the stack has no bucket for dead letters.
    pub(crate) fn dead_letter_container(&self) -> anyhow::Result<String> {
        Ok(format!("s3://{}", self.output("DeadLetterBucketName")?))
    }

    /// Returns the prefix that the ARNs of a service in the stack's account and region share, such
    /// as `arn:aws:sqs:eu-central-1:123456789012`. Callers add a colon and the resource.
    pub(crate) fn arn_of(&self, service: &str) -> Option<String> {
        let account = self.arn.split(':').nth(4)?;
        Some(format!("arn:{}:{service}:{}:{account}", self.partition(), self.region()?))
    }

    /// Returns the ARN of the customer-managed key that encrypts the stack's queues and buckets.
    pub(crate) fn key_arn(&self) -> Option<&str> {
        Some(self.parameter("KmsKeyArn")).filter(|arn| !arn.is_empty())
    }

    /// Returns the value of an output.
    ///
    /// # Errors
    /// If the output does not exist; the message names it.
    pub(crate) fn output(&self, name: &str) -> anyhow::Result<&str> {
        let output = self.outputs.get(name).map(String::as_str);
        output.with_context(|| {
            format!(
                "the stack {} has no output {name}: check that it is a lastmile stack",
                self.name
            )
        })
    }

    pub(crate) fn own_queues(&self) -> impl Iterator<Item = &str> {
        QUEUES.iter().filter_map(|queue| self.outputs.get(&queue.output())).map(String::as_str)
    }

    /// Returns true if the queue belongs to the stack.
    pub(crate) fn owns(&self, queue: &Url) -> bool {
        self.own_queues().any(|own| own == queue.as_str())
    }

    /// Returns the region in the stack's ARN.
    pub(crate) fn region(&self) -> Option<&str> {
        self.arn.split(':').nth(3).filter(|region| !region.is_empty())
    }

    /// Returns the AWS partition in the stack's ARN.
    pub(crate) fn partition(&self) -> &str {
        self.arn.split(':').nth(1).unwrap_or("aws")
    }

    /// Returns the private or plain-HTTP destinations to which the stack's functions may send.
    pub(crate) fn private_destinations(&self) -> anyhow::Result<PrivateDestinations> {
        let allowed = self.parameter("AllowPrivateDestinations");
        let problem = || {
            format!("the parameter AllowPrivateDestinations of the stack {} is invalid", self.name)
        };
        PrivateDestinations::parse(allowed).map_err(anyhow::Error::msg).with_context(problem)
    }

    /// Returns the maximum number of concurrent invocations of the stack's mappings; `None` if the
    /// parameter `Concurrency` is missing or not a value that the template allows.
    pub(crate) fn concurrency(&self) -> Option<u32> {
        let shares = queues::shares_of(self.parameter("Concurrency").parse().ok()?)?;
        let invocations = |mapping: queues::Mapping| match (mapping.share, self.pollers()) {
            (Share::Events, Some(most)) => most.saturating_mul(POLLER_INVOCATIONS),
            (share, _) => shares.size(share),
        };
        Some(queues::mappings().map(invocations).sum())
    }

    /// Returns the maximum number of provisioned event pollers of the events queue; `None` if the
    /// queue has no provisioned pollers.
    fn pollers(&self) -> Option<u32> {
        self.parameter("EventsPollers").split_once('-')?.1.parse().ok()
    }

    /// Returns true if the stack has a role that signs requests to destinations.
    pub(crate) fn signs_requests(&self) -> bool {
        !self.parameter("InvokeRoleArn").is_empty()
    }

    /// Returns the audiences for which the stack's functions may request AWS identity tokens.
    pub(crate) fn identity_audiences(&self) -> impl Iterator<Item = &str> {
        self.list("IdentityAudiences")
    }

    pub(crate) fn dispatch_timeout_ms(&self) -> anyhow::Result<u64> {
        let seconds = self.parameter("DispatchTimeout").parse::<u64>().ok();
        let seconds = seconds.with_context(|| {
            format!(
                "the stack {} has no parameter DispatchTimeout: check that it is a lastmile stack",
                self.name
            )
        })?;
        Ok(seconds.saturating_mul(SECOND_MS))
    }
}

/// Creates the error for operations that need the feature `aws`, in a build without this feature.
#[cfg(not(feature = "aws"))]
pub(crate) fn built_without_aws() -> anyhow::Error {
    anyhow::anyhow!(
        "this build of lastmile does not support deployed stacks. Install the complete build in \
         its source folder: cargo install --locked --path crates/cli --features aws"
    )
}

#[cfg(test)]
impl Stack {
    /// Creates a stack with these parameters and outputs, for tests.
    pub(crate) fn sample(parameters: &[(&str, &str)], outputs: &[(&str, &str)]) -> Self {
        let owned = |all: &[(&str, &str)]| {
            all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let arn = "arn:aws:cloudformation:eu-west-1:123456789012:stack/live/1".to_owned();
        let (parameters, outputs) = (owned(parameters), owned(outputs));
        Self { name: "live".to_owned(), arn, parameters, outputs }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mappings_may_ask_for_the_concurrency_of_the_stack_and_ten_invocations_of_each_poller() {
        let maximum = |concurrency, pollers| {
            let parameters = [("Concurrency", concurrency), ("EventsPollers", pollers)];
            Stack::sample(&parameters, &[]).concurrency()
        };
        assert_eq!((maximum("10", ""), maximum("100", "")), (Some(10), Some(100)));
        assert_eq!(maximum("100", "2-30"), Some(50 + 300));
        assert_eq!((maximum("", ""), maximum("11", "")), (None, None));
    }

    #[test]
    fn a_missing_output_is_an_error_that_names_it_and_a_missing_parameter_has_its_default() {
        let missing = Stack::default().subscriptions().unwrap_err().to_string();
        assert!(missing.contains("ConfigBucketName"), "{missing}");
        let stack = Stack::default();
        assert_eq!(
            (stack.partition(), stack.extra_sinks().count(), stack.dead_letter_bucket()),
            ("aws", 0, None)
        );
        assert_eq!(stack.private_destinations().unwrap(), PrivateDestinations::default());
    }
}
