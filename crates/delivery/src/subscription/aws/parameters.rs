//! The parameters of requests to AWS services, and their types.
//!
//! This module is separate because parameters are checked twice: in the document, where expressions
//! have no value yet, and after rendering. Names and types are those of the services' API
//! references.

use std::time::Duration;

use serde_json::{Map, Value as Json, json};

use super::action::AwsService;
use super::arn::{TargetArn, is_part};
use crate::document::findings::{Message, quoted};
use crate::document::hint::hint;
use crate::document::kind::Kind;
use crate::document::reader::Cursor;
use crate::subscription::kinds::templates::or_report;
use crate::subscription::templates::Templated;
use crate::template::{BodyTemplate, has_tags};
use crate::time::duration::SECOND_MS;
use crate::time::moment;

/// Path of the field `parameters`, for error messages.
const PLACE: &str = "destination.aws.parameters";
/// Maximum delay of an SQS message in seconds.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-message-timers.html>
const DELAY_MAX_SECONDS: u64 = 900;

/// Name of the Lambda parameter with the alias or version of a function.
pub(super) const QUALIFIER: &str = "Qualifier";

/// Names of the parameters by which services detect duplicates.
const IDENTITIES: [&str; 3] = ["DurableExecutionName", "MessageDeduplicationId", "name"];

/// The type of a parameter's value.
#[derive(Debug, Clone, Copy)]
enum Type {
    Text,
    /// A whole number up to this maximum.
    Number(u64),
    Word(&'static [&'static str]),
    Texts,
    /// A time in RFC 3339. The request contains it as seconds since 1970.
    Time,
    /// A mapping of message attributes, each with a type and a value.
    Attributes,
}

/// The time at which a parameter is checked: before or after rendering.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Before rendering: the values of expressions are unknown.
    Written,
    /// After rendering: a string is accepted as a number, and a number or boolean as a string.
    Rendered,
}

/// Returns the names of a service's parameters, with their types.
const fn parameters(service: AwsService) -> &'static [(&'static str, Type)] {
    match service {
        AwsService::Sqs => &[
            ("DelaySeconds", Type::Number(DELAY_MAX_SECONDS)),
            ("MessageAttributes", Type::Attributes),
            ("MessageDeduplicationId", Type::Text),
            ("MessageGroupId", Type::Text),
            ("MessageSystemAttributes", Type::Attributes),
        ],
        AwsService::EventBridge => &[
            ("DetailType", Type::Text),
            ("Resources", Type::Texts),
            ("Source", Type::Text),
            ("Time", Type::Time),
            ("TraceHeader", Type::Text),
        ],
        AwsService::Lambda => &[
            ("ClientContext", Type::Text),
            ("DurableExecutionName", Type::Text),
            ("InvocationType", Type::Word(&["Event", "RequestResponse"])),
            ("LogType", Type::Word(&["None", "Tail"])),
            (QUALIFIER, Type::Text),
            ("TenantId", Type::Text),
        ],
        AwsService::Sns => &[
            ("MessageAttributes", Type::Attributes),
            ("MessageDeduplicationId", Type::Text),
            ("MessageGroupId", Type::Text),
            ("MessageStructure", Type::Word(&["json"])),
            ("Subject", Type::Text),
        ],
        AwsService::StepFunctions => &[("name", Type::Text), ("traceHeader", Type::Text)],
        AwsService::Kinesis => &[
            ("ExplicitHashKey", Type::Text),
            ("PartitionKey", Type::Text),
            ("SequenceNumberForOrdering", Type::Text),
        ],
        AwsService::Firehose => &[],
    }
}

/// The field type of the field `parameters`. The valid names depend on the ARN, so
/// [`check_parameters`] checks them.
pub(super) struct Parameters;

impl Kind for Parameters {
    type Value = Templated<BodyTemplate>;

    const NULL_IS_ABSENT: bool = true;

    fn read(&self, at: &Cursor<'_>) -> Option<Self::Value> {
        at.entries()?;
        or_report(at, PLACE, Templated::body(at.json(), PLACE))
    }

    fn write(&self, value: &Self::Value) -> Json {
        value.written.clone()
    }

    fn schema(&self) -> Json {
        let names = AwsService::ALL.into_iter().flat_map(parameters).map(|(name, _)| *name);
        let mut names: Vec<&str> = names.collect();
        names.sort_unstable();
        names.dedup();
        json!({ "type": ["object", "null"], "propertyNames": { "enum": names } })
    }
}

/// Checks the names and types of the parameters that a document states.
pub(super) fn check_parameters(arn: &TargetArn, at: &Cursor<'_>) -> Option<()> {
    let all = parameters(arn.service());
    let mut are_right = true;
    for entry in at.entries()? {
        let Some((name, kind)) = all.iter().find(|(name, _)| *name == entry.name) else {
            entry.key.error(unknown(arn.service(), entry.name));
            are_right = false;
            continue;
        };
        let problem = match *name {
            QUALIFIER if arn.name().contains(':') => {
                Some("the ARN already has an alias or a version".to_owned())
            }
            // The qualifier must be literal, because `AWS_TARGETS` allows functions by their
            // qualified names. So an event cannot choose it.
            QUALIFIER if !entry.value.json().as_str().is_some_and(is_part) => {
                Some("expected the name of an alias or a version, without expressions".to_owned())
            }
            _ => value(*kind, &entry.value.json(), Stage::Written).err(),
        };
        if let Some(problem) = problem {
            entry.value.error(problem);
            are_right = false;
        } else if IDENTITIES.contains(name)
            && entry.value.json().as_str().is_some_and(|text| !has_tags(text))
        {
            entry.value.warn(same_for_all(name));
        }
    }
    are_right.then_some(())
}

fn same_for_all(name: &str) -> Message {
    let problem = format!(
        "every event has the same {name}, so the service discards all but the first as duplicates"
    );
    Message::new(problem).help("use an expression, such as {{ event.id }}")
}

fn unknown(service: AwsService, name: &str) -> Message {
    let known: Vec<&str> = parameters(service).iter().map(|(name, _)| *name).collect();
    let message = Message::new(format!("{service} has no parameter {}", quoted(name)));
    message.help(match known.is_empty() {
        true => format!("{service} supports no parameters"),
        false => hint(name, &known),
    })
}

/// Converts rendered parameters to the types that the service expects. Parameters that are null are
/// omitted.
///
/// # Errors
/// A message that names the invalid parameter. It does not quote the value.
pub(crate) fn rendered(service: AwsService, json: &[u8]) -> Result<Map<String, Json>, String> {
    let read: Map<String, Json> =
        serde_json::from_slice(json).map_err(|_| format!("{PLACE} is not a mapping"))?;
    let mut typed = Map::new();
    for (name, kind) in parameters(service) {
        let Some(stated) = read.get(*name).filter(|stated| !stated.is_null()) else { continue };
        let right = value(*kind, stated, Stage::Rendered);
        typed.insert(
            (*name).to_owned(),
            right.map_err(|problem| format!("{PLACE}.{name}: {problem}"))?,
        );
    }
    Ok(typed)
}

/// Converts the value of a parameter to the type that the service expects.
fn value(kind: Type, stated: &Json, stage: Stage) -> Result<Json, String> {
    if stage == Stage::Written && (stated.is_null() || stated.as_str().is_some_and(has_tags)) {
        return Ok(Json::Null);
    }
    match kind {
        Type::Text => text(stated, stage).map(Json::from),
        Type::Number(most) => number(stated, stage)
            .filter(|number| *number <= most)
            .map(Json::from)
            .ok_or_else(|| format!("expected a whole number from 0 to {most}")),
        Type::Word(words) => match stated.as_str().filter(|stated| words.contains(stated)) {
            Some(word) => Ok(word.into()),
            None => Err(format!("expected {}", words.join(" or "))),
        },
        Type::Texts => {
            let texts = stated.as_array().ok_or("expected a list of strings")?;
            texts.iter().map(|text| value(Type::Text, text, stage)).collect()
        }
        Type::Time => {
            let ms = stated.as_str().and_then(moment::date_time);
            let right = "expected a time such as 2026-11-20T07:03:00Z";
            ms.map(seconds).ok_or_else(|| right.to_owned())
        }
        Type::Attributes => attributes(stated, stage),
    }
}

/// Returns a time as seconds since 1970, with a fraction if necessary. The services require this
/// form.
pub(crate) fn seconds(ms: u64) -> Json {
    match ms % SECOND_MS {
        0 => Json::from(ms / SECOND_MS),
        _ => Json::from(Duration::from_millis(ms).as_secs_f64()),
    }
}

fn text(stated: &Json, stage: Stage) -> Result<String, String> {
    match stated {
        Json::String(text) => Ok(text.clone()),
        Json::Number(_) | Json::Bool(_) if stage == Stage::Rendered => Ok(stated.to_string()),
        Json::Null | Json::Number(_) | Json::Bool(_) | Json::Array(_) | Json::Object(_) => {
            Err("expected a string".to_owned())
        }
    }
}

fn number(stated: &Json, stage: Stage) -> Option<u64> {
    let text = stated.as_str().filter(|_| stage == Stage::Rendered);
    text.map_or_else(|| stated.as_u64(), |text| text.parse().ok())
}

/// Converts a mapping of message attributes. Each attribute is
/// `{DataType: String, StringValue: …}`, or `{DataType: Binary, BinaryValue: …}` with the value in
/// base64.
fn attributes(stated: &Json, stage: Stage) -> Result<Json, String> {
    const FORM: &str = "expected NAME: {DataType: String, StringValue: TEXT}, or DataType: Binary \
                        with a BinaryValue in base64";
    let by_name = stated.as_object().ok_or(FORM)?;
    let attribute = |(name, stated): (&String, &Json)| {
        let members = stated.as_object().filter(|members| members.len() == 2).ok_or(FORM)?;
        let of_type = members.get("DataType").ok_or(FORM)?;
        let key = ["StringValue", "BinaryValue"].into_iter().find(|key| members.contains_key(*key));
        let key = key.ok_or(FORM)?;
        let of_type = value(Type::Text, of_type, stage)?;
        let of_value = value(Type::Text, &members[key], stage)?;
        Ok((name.clone(), json!({ "DataType": of_type, key: of_value })))
    };
    by_name.iter().map(attribute).collect::<Result<Map<_, _>, String>>().map(Json::Object)
}
