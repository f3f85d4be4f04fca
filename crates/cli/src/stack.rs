//! A deployed CloudFormation stack, as far as the command line needs it: parameters and outputs.
//!
//! Separate because it is the only question to CloudFormation, asked without its client: one
//! `DescribeStacks` request, signed like every other and sent by the HTTP client that is here
//! anyway. That costs this file; the client would be one more crate of ninety operations in every
//! build.
//!
//! Does not retry: a person is waiting and can ask again.

use std::collections::BTreeMap;
use std::time::{Duration, UNIX_EPOCH};

use adapters::machine::Machine;
use adapters::subscriptions::Location;
use anyhow::{Context as _, bail};
use aws_config::{BehaviorVersion, SdkConfig};
use aws_credential_types::provider::ProvideCredentials as _;
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4;
use delivery::address::PrivateDestinations;
use delivery::ports::Clock as _;
use delivery::time::duration::SECOND_MS;
use quick_xml::escape::resolve_xml_entity;
use quick_xml::events::{BytesRef, BytesStart, Event};

/// The version of the API.
/// <https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_DescribeStacks.html>
const API_VERSION: &str = "2010-05-15";
/// The endpoint of CloudFormation, where the environment names one.
const ENDPOINT: &str = "AWS_ENDPOINT_URL_CLOUDFORMATION";
/// How long CloudFormation may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// The outputs that name its queues.
const OWN_QUEUES: [&str; 4] =
    ["EventsQueueUrl", "RetryQueueUrl", "DeadLetterQueueUrl", "LastResortQueueUrl"];
const FORM: &str = "application/x-www-form-urlencoded; charset=utf-8";

/// A deployed stack.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Stack {
    /// Its name.
    pub(crate) name: String,
    id: String,
    parameters: BTreeMap<String, String>,
    outputs: BTreeMap<String, String>,
}

/// AWS as the environment says.
pub(crate) async fn aws() -> SdkConfig {
    aws_config::load_defaults(BehaviorVersion::latest()).await
}

impl Stack {
    /// Asks CloudFormation for the stack of this name.
    pub(crate) async fn describe(name: &str) -> anyhow::Result<Self> {
        let answer =
            ask(name).await.with_context(|| format!("the stack {name} cannot be looked at"))?;
        let stack = Self { name: name.to_owned(), ..parse(&answer)? };
        if stack.outputs.is_empty() && stack.parameters.is_empty() {
            bail!("the stack {name} has neither parameters nor outputs; is it lastmile's?");
        }
        Ok(stack)
    }

    /// Where it reads its subscriptions.
    pub(crate) fn subscriptions(&self) -> anyhow::Result<Location> {
        let named = |of: &BTreeMap<String, String>, name: &str| {
            of.get(name).cloned().with_context(|| format!("the stack {} has no {name}", self.name))
        };
        let bucket = named(&self.outputs, "ConfigBucketName")?;
        Ok(Location::S3 { bucket, key: named(&self.parameters, "SubscriptionsKey")? })
    }

    /// About how many messages the retry queue holds. Nobody can say of a queue whose they are
    /// without taking them.
    pub(crate) async fn retries_waiting(&self) -> anyhow::Result<u64> {
        use aws_sdk_sqs::types::QueueAttributeName::{
            ApproximateNumberOfMessages, ApproximateNumberOfMessagesDelayed,
            ApproximateNumberOfMessagesNotVisible,
        };
        let url = self.outputs.get("RetryQueueUrl");
        let url = url.with_context(|| format!("the stack {} has no RetryQueueUrl", self.name))?;
        let ask = aws_sdk_sqs::Client::new(&aws().await).get_queue_attributes().queue_url(url);
        let counts = [
            ApproximateNumberOfMessages,
            ApproximateNumberOfMessagesDelayed,
            ApproximateNumberOfMessagesNotVisible,
        ];
        let answer = ask.set_attribute_names(Some(counts.to_vec())).send().await;
        let answer = answer.with_context(|| format!("the retry queue {url} does not answer"))?;
        let counted = answer.attributes.unwrap_or_default();
        Ok(counted.values().filter_map(|count| count.parse::<u64>().ok()).sum())
    }

    /// The ARNs that its functions may write dead letters to, besides what is its own; with
    /// wildcards.
    pub(crate) fn extra_sinks(&self) -> impl Iterator<Item = &str> {
        let arns = self.parameters.get("ExtraSinkArns").map(String::as_str).unwrap_or_default();
        arns.split(',').map(str::trim).filter(|arn| !arn.is_empty())
    }

    /// The bucket of its own dead letters.
    pub(crate) fn dead_letter_bucket(&self) -> Option<&str> {
        self.outputs.get("DeadLetterBucketName").map(String::as_str)
    }

    /// The URLs of the queues that it reads, or keeps what went wrong in.
    pub(crate) fn own_queues(&self) -> impl Iterator<Item = &str> {
        OWN_QUEUES.iter().filter_map(|name| self.outputs.get(*name)).map(String::as_str)
    }

    /// The region that it is in: that of its own ARN.
    pub(crate) fn region(&self) -> Option<&str> {
        self.id.split(':').nth(3).filter(|region| !region.is_empty())
    }

    /// The part of AWS that it is in, as ARNs name it: that of its own ARN.
    pub(crate) fn partition(&self) -> &str {
        self.id.split(':').nth(1).unwrap_or("aws")
    }

    /// What its functions may reach although it is private, or without TLS.
    pub(crate) fn private_destinations(&self) -> anyhow::Result<PrivateDestinations> {
        let allowed =
            self.parameters.get("AllowPrivateDestinations").map(String::as_str).unwrap_or_default();
        let problem = || format!("the stack {} has a wrong AllowPrivateDestinations", self.name);
        PrivateDestinations::parse(allowed).map_err(anyhow::Error::msg).with_context(problem)
    }

    /// How long an invocation of dispatch may take.
    pub(crate) fn dispatch_timeout_ms(&self) -> anyhow::Result<u64> {
        let seconds =
            self.parameters.get("DispatchTimeout").and_then(|seconds| seconds.parse::<u64>().ok());
        let seconds =
            seconds.with_context(|| format!("the stack {} has no DispatchTimeout", self.name))?;
        Ok(seconds.saturating_mul(SECOND_MS))
    }
}

/// The answer to `DescribeStacks`.
async fn ask(name: &str) -> anyhow::Result<String> {
    let config = aws().await;
    let region = config.region().context("no AWS region is set")?.to_string();
    let url = endpoint(&config, &region);
    let query = [("Action", "DescribeStacks"), ("Version", API_VERSION), ("StackName", name)];
    let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(query).finish();
    let provider = config.credentials_provider().context("no AWS credentials are set")?;
    let identity =
        provider.provide_credentials().await.context("no AWS credentials can be had")?.into();
    let signing = v4::SigningParams::builder()
        .identity(&identity)
        .region(&region)
        .name("cloudformation")
        .time(UNIX_EPOCH + Duration::from_millis(Machine.now_ms()))
        .settings(SigningSettings::default())
        .build()?
        .into();
    let headers = [("content-type", FORM)];
    let signable = SignableRequest::new(
        "POST",
        &url,
        headers.into_iter(),
        SignableBody::Bytes(body.as_bytes()),
    )?;
    let (signed, _) = sign(signable, &signing)?.into_parts();
    let mut request = reqwest::Client::new()
        .post(&url)
        .timeout(PATIENCE)
        .header("content-type", FORM)
        .body(body.clone());
    for (header, value) in signed.headers() {
        request = request.header(header, value);
    }
    let answer = request.send().await?;
    let (status, text) = (answer.status(), answer.text().await?);
    if !status.is_success() {
        bail!("CloudFormation answers {status}: {}", message(&text).unwrap_or(text));
    }
    Ok(text)
}

/// Where CloudFormation is: as the environment says, else by region.
fn endpoint(config: &SdkConfig, region: &str) -> String {
    let named = std::env::var(ENDPOINT).ok().or_else(|| config.endpoint_url().map(str::to_owned));
    let named = named.map(|url| format!("{}/", url.trim_end_matches('/')));
    let domain = if region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" };
    named.unwrap_or_else(|| format!("https://cloudformation.{region}.{domain}/"))
}

/// Id, parameters and outputs of the one stack in the answer.
fn parse(xml: &str) -> anyhow::Result<Stack> {
    let mut stack = Stack::default();
    let mut key = String::new();
    for (element, text) in texts(xml)? {
        match element.as_str() {
            "StackId" => stack.id = text,
            "ParameterKey" | "OutputKey" => key = text,
            "ParameterValue" => _ = stack.parameters.insert(std::mem::take(&mut key), text),
            "OutputValue" => _ = stack.outputs.insert(std::mem::take(&mut key), text),
            _ => {}
        }
    }
    Ok(stack)
}

/// The message of an error.
fn message(xml: &str) -> Option<String> {
    texts(xml).ok()?.into_iter().find(|(element, _)| element == "Message").map(|(_, text)| text)
}

/// Every element that holds nothing but text, with it, in order.
fn texts(xml: &str) -> anyhow::Result<Vec<(String, String)>> {
    let mut reader = quick_xml::Reader::from_str(xml);
    let mut texts = Vec::new();
    let mut open: Option<(String, String)> = None;
    let name =
        |start: &BytesStart<'_>| String::from_utf8_lossy(start.local_name().as_ref()).into_owned();
    let add = |open: &mut Option<(String, String)>, text: &str| {
        open.iter_mut().for_each(|(_, so_far)| so_far.push_str(text));
    };
    loop {
        match reader.read_event().context("the answer is no XML")? {
            Event::Eof => return Ok(texts),
            Event::Start(start) => open = Some((name(&start), String::new())),
            Event::Empty(start) => texts.push((name(&start), String::new())),
            Event::Text(text) => add(&mut open, &text.decode()?),
            Event::GeneralRef(reference) => add(&mut open, &resolved(&reference)?),
            Event::End(_) => texts.extend(open.take()),
            Event::CData(_)
            | Event::Comment(_)
            | Event::Decl(_)
            | Event::PI(_)
            | Event::DocType(_) => {}
        }
    }
}

/// What `&amp;` and `&#46;` stand for.
fn resolved(reference: &BytesRef<'_>) -> anyhow::Result<String> {
    let character = reference.resolve_char_ref()?.map(String::from);
    let name = reference.decode()?;
    Ok(character.or_else(|| resolve_xml_entity(&name).map(str::to_owned)).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: &str = "<DescribeStacksResponse xmlns=\"http://cloudformation.amazonaws.com/doc/2010-05-15/\">\
        <DescribeStacksResult><Stacks><member><StackName>a</StackName>\
        <StackId>arn:aws-cn:cloudformation:cn-north-1:123456789012:stack/a/1</StackId><Parameters>\
        <member><ParameterKey>ExtraSinkArns</ParameterKey><ParameterValue>arn:x, arn:y</ParameterValue></member>\
        <member><ParameterKey>SubscriptionsKey</ParameterKey><ParameterValue>a&amp;b&#46;yaml</ParameterValue></member>\
        <member><ParameterKey>DefaultTopic</ParameterKey><ParameterValue/></member>\
        <member><ParameterKey>DispatchTimeout</ParameterKey><ParameterValue>120</ParameterValue></member></Parameters>\
        <Outputs><member><Description>x</Description><OutputKey>ConfigBucketName</OutputKey>\
        <OutputValue>config-1</OutputValue></member></Outputs></member></Stacks></DescribeStacksResult>\
        </DescribeStacksResponse>";

    #[test]
    fn a_stack_says_where_it_reads_its_subscriptions_and_how_long_dispatch_may_take() {
        let stack = parse(ANSWER).unwrap();
        assert_eq!(stack.dispatch_timeout_ms().unwrap(), 120_000);
        let location = Location::S3 { bucket: "config-1".to_owned(), key: "a&b.yaml".to_owned() };
        assert_eq!(stack.subscriptions().unwrap(), location);
        assert_eq!(stack.parameters["DefaultTopic"], "");
        assert_eq!(
            (stack.partition(), stack.extra_sinks().collect::<Vec<_>>()),
            ("aws-cn", vec!["arn:x", "arn:y"])
        );
    }

    #[test]
    fn an_error_is_told_by_its_message_and_what_is_missing_by_its_name() {
        let refused = "<ErrorResponse><Error><Code>ValidationError</Code><Message>Stack a does not exist</Message></Error>\
                       </ErrorResponse>";
        assert_eq!(message(refused).as_deref(), Some("Stack a does not exist"));
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
