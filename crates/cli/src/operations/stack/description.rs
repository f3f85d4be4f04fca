//! Reads a stack from CloudFormation.
//!
//! Separate because only builds with the feature `aws` contain CloudFormation's client. A build
//! without the feature supports `dev`, `demo` and all commands without `--stack`.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, bail};
use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;
use aws_sdk_cloudformation::Client;
use aws_sdk_cloudformation::config::Builder;
use aws_sdk_cloudformation::types::Stack as Description;

use super::{Stack, aws};
use crate::terminal::advice::aws_error;

/// The timeout of a request to CloudFormation.
const TIMEOUT: Duration = Duration::from_secs(30);

impl Stack {
    /// Reads the parameters and outputs of the stack with this name.
    pub(crate) async fn describe(name: &str) -> anyhow::Result<Self> {
        let answer = client().await?.describe_stacks().stack_name(name).send().await;
        let answer = answer.map_err(|error| aws_error(&error));
        let answer = answer.with_context(|| format!("the stack {name} cannot be read"))?;
        let description = answer.stacks.unwrap_or_default().into_iter().next();
        let stack =
            from_description(name, description.unwrap_or_else(|| Description::builder().build()));
        if stack.outputs.is_empty() && stack.parameters.is_empty() {
            bail!(
                "the stack {name} has no parameters and no outputs; check that it is a lastmile \
                 stack"
            );
        }
        Ok(stack)
    }
}

fn from_description(name: &str, description: Description) -> Stack {
    let outputs = description.outputs.unwrap_or_default().into_iter();
    let outputs: BTreeMap<_, _> =
        outputs.filter_map(|output| Some((output.output_key?, output.output_value?))).collect();
    // The CDK replaces some parameters with fixed values and repeats them as outputs (infra/cdk).
    let mut parameters = outputs.clone();
    let own = description.parameters.unwrap_or_default().into_iter();
    parameters.extend(own.filter_map(|own| Some((own.parameter_key?, own.parameter_value?))));
    let arn = description.stack_id.unwrap_or_default();
    Stack { name: name.to_owned(), arn, parameters, outputs }
}

async fn client() -> anyhow::Result<Client> {
    // Through a slow proxy, connecting alone may take as long as a whole request normally does.
    let timeouts =
        TimeoutConfig::builder().connect_timeout(TIMEOUT).operation_timeout(TIMEOUT).build();
    let aws = aws().await;
    aws.region().context(
        "no AWS region is set: set AWS_REGION, or a region in the profile (AWS_PROFILE)",
    )?;
    let config = Builder::from(&aws).timeout_config(timeouts);
    Ok(Client::from_conf(config.retry_config(RetryConfig::disabled()).build()))
}

#[cfg(test)]
mod tests {
    use adapters::live_topics::Location;
    use aws_sdk_cloudformation::types::{Output, Parameter};

    use super::*;

    fn description() -> Description {
        let parameter =
            |key, value| Parameter::builder().parameter_key(key).parameter_value(value).build();
        let output = Output::builder().output_key("ConfigBucketName").output_value("config-1");
        Description::builder()
            .stack_id("arn:aws-cn:cloudformation:cn-north-1:123456789012:stack/a/1")
            .parameters(parameter("ExtraSinkArns", "arn:x, arn:y"))
            .parameters(parameter("DefaultTopic", ""))
            .parameters(parameter("DispatchTimeout", "120"))
            .outputs(output.build())
            .build()
    }

    #[test]
    fn a_stack_says_where_it_reads_its_subscriptions_and_how_long_dispatch_may_take() {
        let stack = from_description("a", description());
        assert_eq!(stack.dispatch_timeout_ms().unwrap(), 120_000);
        let location =
            Location::Bucket { name: "config-1".to_owned(), prefix: "subscriptions/".to_owned() };
        assert_eq!(stack.subscriptions().unwrap(), location);
        assert_eq!(stack.parameters["DefaultTopic"], "");
        assert_eq!(
            (stack.partition(), stack.extra_sinks().collect::<Vec<_>>()),
            ("aws-cn", vec!["arn:x", "arn:y"])
        );
    }

    #[test]
    fn a_parameter_that_only_an_output_has_counts_too() {
        let output = |key, value| Output::builder().output_key(key).output_value(value).build();
        let description = Description::builder()
            .outputs(output("DispatchTimeout", "60"))
            .parameters(
                Parameter::builder()
                    .parameter_key("DispatchTimeout")
                    .parameter_value("120")
                    .build(),
            )
            .build();
        let stack = from_description("a", description);
        assert_eq!(stack.dispatch_timeout_ms().unwrap(), 120_000);
    }
}
