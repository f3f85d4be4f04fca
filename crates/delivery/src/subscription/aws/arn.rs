//! [`TargetArn`]: the ARN of an AWS resource that is a destination, and its endpoint.

use std::fmt;
use std::str::FromStr;

use serde_json::{Value as Json, json};
use url::Url;

use super::action::AwsService;
use crate::document::findings::{Message, quoted};
use crate::document::kind::Kind;
use crate::document::reader::Cursor;
use crate::subscription::auth::sigv4::check_region;

/// The AWS partitions, each with the domain of its hosts.
/// <https://docs.aws.amazon.com/general/latest/gr/rande.html>
const PARTITIONS: [(&str, &str); 4] = [
    ("aws", "amazonaws.com"),
    ("aws-cn", "amazonaws.com.cn"),
    ("aws-us-gov", "amazonaws.com"),
    ("aws-eusc", "amazonaws.eu"),
];
/// Maximum length of a resource's name. EventBridge buses and SNS topics have this limit, the
/// highest of all targets.
const NAME_MAX_BYTES: usize = 256;
/// The syntax of an ARN, for messages.
const FORM: &str = "arn:PARTITION:SERVICE:REGION:ACCOUNT:RESOURCE, such as arn:aws:sqs:eu-west-1:123456789012:orders";

/// The ARN of a resource that is a destination. It contains no wildcards and no expressions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetArn {
    text: String,
    service: AwsService,
    region: String,
    account: String,
    /// The name of the resource. For a function or a state machine it includes the alias or
    /// version, as in `orders:prod`.
    name: String,
    endpoint: Url,
    address: Url,
}

impl TargetArn {
    /// Returns the AWS service of the resource.
    #[must_use]
    pub const fn service(&self) -> AwsService {
        self.service
    }

    /// Returns the AWS region of the resource, which determines the endpoint.
    #[must_use]
    pub fn region(&self) -> &str {
        &self.region
    }

    /// Returns the number of the AWS account that owns the resource.
    #[must_use]
    pub fn account(&self) -> &str {
        &self.account
    }

    /// Returns the name of the resource, such as `orders`. For a function or a state machine it
    /// includes the alias or version, as in `orders:prod`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the complete ARN as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the URL of the service, `https://SERVICE.REGION.amazonaws.com/`, or its equivalent
    /// in a different partition.
    #[must_use]
    pub const fn endpoint(&self) -> &Url {
        &self.endpoint
    }

    /// Returns the ARN as the URL of a destination. Its scheme is `arn`.
    #[must_use]
    pub const fn address(&self) -> &Url {
        &self.address
    }

    /// Returns true if the resource is a FIFO queue or FIFO topic.
    #[must_use]
    pub fn is_fifo(&self) -> bool {
        matches!(self.service, AwsService::Sqs | AwsService::Sns) && self.name.ends_with(".fifo")
    }
}

impl fmt::Display for TargetArn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for TargetArn {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.splitn(6, ':').collect();
        let ["arn", partition, service, region, account, resource] = parts[..] else {
            return Err(format!("not an ARN: {FORM}"));
        };
        let Some(hosts) = hosts_of(partition) else {
            let known = PARTITIONS.map(|(known, _)| known).join(", ");
            return Err(format!(
                "the partition {} is unknown; expected {known}",
                quoted(partition)
            ));
        };
        let found = AwsService::ALL.into_iter().find(|known| known.as_str() == service);
        let Some(service) = found else {
            let known = AwsService::ALL.map(AwsService::as_str).join(", ");
            return Err(format!(
                "the service {} is not a supported target; expected {known}",
                quoted(service)
            ));
        };
        check_region(region)?;
        if account.len() != 12 || !account.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err("the account in an ARN must have 12 digits".to_owned());
        }
        let name = resource.strip_prefix(service.resource_prefix());
        let Some(name) = name.filter(|name| is_name(service, name)) else {
            return Err(format!("an ARN of {service} must end with {}", service.resource_form()));
        };
        let url = |text: &str| Url::parse(text).map_err(|error| error.to_string());
        Ok(Self {
            text: text.to_owned(),
            service,
            region: region.to_owned(),
            account: account.to_owned(),
            name: name.to_owned(),
            endpoint: url(&format!("https://{}.{region}.{hosts}/", service.as_str()))?,
            address: url(text)?,
        })
    }
}

/// Returns the domain of a partition's hosts; `None` if the partition is unknown.
#[must_use]
pub fn hosts_of(partition: &str) -> Option<&'static str> {
    PARTITIONS.iter().find(|(known, _)| *known == partition).map(|(_, hosts)| *hosts)
}

/// Returns true if the text is a valid resource name. Wildcards and expressions are not valid.
fn is_name(service: AwsService, text: &str) -> bool {
    let (parts_max, slash) = match service {
        AwsService::Lambda | AwsService::StepFunctions => (2, None),
        AwsService::EventBridge => (1, Some('/')),
        AwsService::Sqs | AwsService::Sns | AwsService::Kinesis | AwsService::Firehose => (1, None),
    };
    let parts =
        || text.split(':').flat_map(|part| part.split(|character| Some(character) == slash));
    text.len() <= NAME_MAX_BYTES && text.split(':').count() <= parts_max && parts().all(is_part)
}

/// Returns true if the text is a valid segment of a resource name, such as an alias or a version.
pub(super) fn is_part(part: &str) -> bool {
    let is_of_part =
        |character: char| character.is_ascii_alphanumeric() || "-_.$".contains(character);
    !part.is_empty() && part.chars().all(is_of_part)
}

/// The field type of the field `arn`.
pub(super) struct Arns;

impl Kind for Arns {
    type Value = TargetArn;

    fn read(&self, at: &Cursor<'_>) -> Option<TargetArn> {
        at.text()?.parse().map_or_else(|problem: String| at.refuse(Message::new(problem)), Some)
    }

    fn write(&self, value: &TargetArn) -> Json {
        json!(value.as_str())
    }

    fn schema(&self) -> Json {
        let partitions = PARTITIONS.map(|(known, _)| known).join("|");
        let services = AwsService::ALL.map(AwsService::as_str).join("|");
        let pattern =
            format!("^arn:({partitions}):({services}):[a-z0-9-]+:[0-9]{{12}}:[A-Za-z0-9:/_.$-]+$");
        json!({ "type": "string", "pattern": pattern })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn service_region_account_and_host_follow_from_an_arn() {
        for (text, service, region, name, host) in [
            (
                "arn:aws:sqs:eu-west-1:123456789012:orders.fifo",
                AwsService::Sqs,
                "eu-west-1",
                "orders.fifo",
                "sqs.eu-west-1.amazonaws.com",
            ),
            (
                "arn:aws-cn:sns:cn-north-1:123456789012:orders",
                AwsService::Sns,
                "cn-north-1",
                "orders",
                "sns.cn-north-1.amazonaws.com.cn",
            ),
            (
                "arn:aws:lambda:us-east-1:123456789012:function:orders:prod",
                AwsService::Lambda,
                "us-east-1",
                "orders:prod",
                "lambda.us-east-1.amazonaws.com",
            ),
            (
                "arn:aws-us-gov:events:us-gov-west-1:123456789012:event-bus/shop/a",
                AwsService::EventBridge,
                "us-gov-west-1",
                "shop/a",
                "events.us-gov-west-1.amazonaws.com",
            ),
            (
                "arn:aws-eusc:states:eusc-de-east-1:123456789012:stateMachine:orders",
                AwsService::StepFunctions,
                "eusc-de-east-1",
                "orders",
                "states.eusc-de-east-1.amazonaws.eu",
            ),
            (
                "arn:aws:kinesis:eu-west-1:123456789012:stream/orders",
                AwsService::Kinesis,
                "eu-west-1",
                "orders",
                "kinesis.eu-west-1.amazonaws.com",
            ),
            (
                "arn:aws:firehose:eu-west-1:123456789012:deliverystream/orders",
                AwsService::Firehose,
                "eu-west-1",
                "orders",
                "firehose.eu-west-1.amazonaws.com",
            ),
        ] {
            let arn: TargetArn = text.parse().unwrap();
            assert_eq!(
                (arn.service(), arn.region(), arn.name()),
                (service, region, name),
                "{text}"
            );
            assert_eq!(arn.endpoint().as_str(), format!("https://{host}/"));
            assert_eq!((arn.account(), arn.as_str()), ("123456789012", text));
            assert_eq!(arn.address().as_str(), text);
        }
    }

    #[test]
    fn another_text_is_refused_with_what_is_right() {
        for (text, problem) in [
            ("https://sqs.eu-west-1.amazonaws.com/1/q", "not an ARN: arn:PARTITION:"),
            ("arn:aws:sqs:eu-west-1:123456789012", "not an ARN"),
            (
                "arn:azure:sqs:eu-west-1:123456789012:a",
                "the partition \"azure\" is unknown; expected aws, aws-cn",
            ),
            (
                "arn:aws:s3:::bucket",
                "the service \"s3\" is not a supported target; expected sqs, events, lambda",
            ),
            ("arn:aws:sqs:*:123456789012:a", "expected a region such as eu-west-1"),
            ("arn:aws:sqs:eu-west-1::a", "the account in an ARN must have 12 digits"),
            ("arn:aws:sqs:eu-west-1:123456789012:shop-*", "an ARN of SQS must end with QUEUE"),
            (
                "arn:aws:sqs:eu-west-1:123456789012:{{ event.type }}",
                "an ARN of SQS must end with QUEUE",
            ),
            ("arn:aws:sqs:eu-west-1:123456789012:a:b", "an ARN of SQS must end with QUEUE"),
            (
                "arn:aws:lambda:eu-west-1:123456789012:orders",
                "an ARN of Lambda must end with function:NAME",
            ),
            (
                "arn:aws:events:eu-west-1:123456789012:rule/a",
                "an ARN of EventBridge must end with event-bus/NAME",
            ),
            (
                "arn:aws:states:eu-west-1:123456789012:stateMachine:a:b:c",
                "an ARN of Step Functions must end with",
            ),
        ] {
            let refused = text.parse::<TargetArn>().unwrap_err();
            assert!(refused.starts_with(problem), "{text}: {refused}");
        }
    }
}
