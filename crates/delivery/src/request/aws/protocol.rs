//! Serializes requests in the protocols of AWS services: JSON with a target header, the query
//! protocol of SNS, and the REST protocol of Lambda.
//!
//! This module is separate because it makes no decisions: it only serializes. Names of members and
//! headers are those of the services' API references.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value as Json, json};
use url::form_urlencoded::Serializer;

use crate::subscription::aws::{AwsService, AwsTarget, TargetArn};

/// Characters that must be encoded in a part of a path or query: all except unreserved ones (RFC
/// 3986, 2.3).
const NOT_UNRESERVED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// Version of the SNS API that requests state.
const SNS_VERSION: &str = "2010-03-31";
/// Lambda parameters that are sent as headers, each with the name of its header.
const LAMBDA_HEADERS: [(&str, &str); 5] = [
    ("InvocationType", "x-amz-invocation-type"),
    ("LogType", "x-amz-log-type"),
    ("ClientContext", "x-amz-client-context"),
    ("DurableExecutionName", "x-amz-durable-execution-name"),
    ("TenantId", "x-amz-tenant-id"),
];

/// The parts of a request that depend on the protocol.
pub(super) struct Protocol {
    pub(super) path: String,
    pub(super) query: Option<String>,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Bytes,
}

impl Protocol {
    /// Serializes a request with this payload. The parameters must have the types that the service
    /// requires.
    ///
    /// # Errors
    ///
    /// Fails if the service accepts only text, but the payload is not UTF-8.
    pub(super) fn new(
        target: &AwsTarget,
        payload: Bytes,
        parameters: Map<String, Json>,
    ) -> Result<Self, String> {
        let arn = &target.arn;
        let mut members = parameters;
        let mut put = |name: &str, value: Json| members.insert(name.to_owned(), value);
        let json = match arn.service() {
            AwsService::Lambda => return Ok(invoke(arn, payload, &members)),
            AwsService::Sns => {
                put("Message", text(&payload)?.into());
                put("TopicArn", arn.as_str().into());
                return Ok(form(&members));
            }
            AwsService::Sqs => {
                put("MessageBody", text(&payload)?.into());
                put(
                    "QueueUrl",
                    format!("{}{}/{}", arn.endpoint(), arn.account(), arn.name()).into(),
                );
                // With this header, SQS sends its older error codes in a header. The SDKs send it
                // too.
                let mode = ("x-amzn-query-mode".to_owned(), "true".to_owned());
                let mut protocol = json_request("1.0", "AmazonSQS.SendMessage", &members.into());
                protocol.headers.push(mode);
                protocol
            }
            AwsService::EventBridge => {
                put("Detail", text(&payload)?.into());
                put("EventBusName", arn.as_str().into());
                json_request("1.1", "AWSEvents.PutEvents", &json!({ "Entries": [members] }))
            }
            AwsService::StepFunctions => {
                put("input", text(&payload)?.into());
                put("stateMachineArn", arn.as_str().into());
                json_request("1.0", "AWSStepFunctions.StartExecution", &members.into())
            }
            AwsService::Kinesis => {
                put("Data", STANDARD.encode(&payload).into());
                put("StreamARN", arn.as_str().into());
                json_request("1.1", "Kinesis_20131202.PutRecord", &members.into())
            }
            AwsService::Firehose => {
                put("DeliveryStreamName", arn.name().into());
                put("Record", json!({ "Data": STANDARD.encode(&payload) }));
                json_request("1.1", "Firehose_20150804.PutRecord", &members.into())
            }
        };
        Ok(json)
    }
}

fn text(payload: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(payload)
        .map_err(|_| "the service accepts only text, but the body is not UTF-8".to_owned())
}

/// Returns a request of the JSON protocol with this version and this target header.
fn json_request(version: &str, target: &str, members: &Json) -> Protocol {
    let headers = [
        ("content-type", format!("application/x-amz-json-{version}")),
        ("x-amz-target", target.to_owned()),
    ];
    Protocol {
        path: "/".to_owned(),
        query: None,
        headers: headers.map(|(name, value)| (name.to_owned(), value)).into(),
        body: members.to_string().into(),
    }
}

/// Returns a request of the query protocol, whose body is a form. Message attributes are numbered.
fn form(members: &Map<String, Json>) -> Protocol {
    let mut form = Serializer::new(String::new());
    form.append_pair("Action", "Publish").append_pair("Version", SNS_VERSION);
    for (name, value) in members {
        let Some(attributes) = value.as_object() else {
            form.append_pair(name, &plain(value));
            continue;
        };
        for (index, (attribute, parts)) in attributes.iter().enumerate() {
            let entry = format!("{name}.entry.{}", index + 1);
            form.append_pair(&format!("{entry}.Name"), attribute);
            for (member, value) in parts.as_object().into_iter().flatten() {
                form.append_pair(&format!("{entry}.Value.{member}"), &plain(value));
            }
        }
    }
    let kind = "application/x-www-form-urlencoded; charset=utf-8";
    Protocol {
        path: "/".to_owned(),
        query: None,
        headers: vec![("content-type".to_owned(), kind.to_owned())],
        body: form.finish().into(),
    }
}

/// Returns a request that invokes a Lambda function. The payload is the body, and parameters are
/// headers.
fn invoke(arn: &TargetArn, payload: Bytes, parameters: &Map<String, Json>) -> Protocol {
    let encoded = |text: &str| utf8_percent_encode(text, NOT_UNRESERVED).to_string();
    let header = |(parameter, header): (&str, &str)| {
        Some((header.to_owned(), plain(parameters.get(parameter)?)))
    };
    let qualifier = parameters.get("Qualifier").map(plain);
    Protocol {
        path: format!("/2015-03-31/functions/{}/invocations", encoded(arn.as_str())),
        query: qualifier.map(|qualifier| format!("Qualifier={}", encoded(&qualifier))),
        headers: LAMBDA_HEADERS.into_iter().filter_map(header).collect(),
        body: payload,
    }
}

/// Returns a JSON string, number or boolean as plain text.
fn plain(value: &Json) -> String {
    value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned)
}
