//! Converts the event notifications that an Amazon S3 bucket sends to a queue.
//!
//! A notification has a list of records, and each record is an event. Ids follow the adapter of the
//! CloudEvents project: they are request ids. The events of one request that deletes several
//! objects therefore share an id and differ in `subject`. S3 sends a test event when notifications
//! are set up. The test event is delivered too, to show that the route to the subscriber works.
//! <https://github.com/cloudevents/spec/blob/main/cloudevents/adapters/aws-s3.md>,
//! <https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-content-structure.html>

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::cloud_event::{Unconverted, cloud_event, joined, non_empty, required};
use super::publisher::Publisher;
use crate::event::Members;

/// Value of the member `Event` in the test event of S3.
const TEST_EVENT: &str = "s3:TestEvent";

pub(super) fn publisher(members: &Members<'_>) -> Option<Publisher> {
    let bucket = if is_test(members) {
        members.text("Bucket")?
    } else {
        let records = records(members).ok()?;
        let record = Members::parse(records.first()?.get()).ok()?;
        record.text("eventSource").filter(|source| source == "aws:s3")?;
        object(&object(&record, "s3")?, "bucket")?.text("name")?
    };
    (!bucket.is_empty()).then(|| Publisher::Bucket(bucket.into_owned()))
}

/// Splits a notification into one notification for each of its records. Any other text is returned
/// unchanged.
pub(super) fn records_of(text: &str) -> Vec<Cow<'_, str>> {
    let members = Members::parse(text).ok().filter(|members| members.get("specversion").is_none());
    match members.as_ref().and_then(|members| records(members).ok()) {
        Some(records) if records.len() > 1 => {
            let notification = |record: &RawValue| format!(r#"{{"Records":[{record}]}}"#).into();
            records.into_iter().map(notification).collect()
        }
        Some(_) | None => vec![text.into()],
    }
}

/// Converts a notification with one record, or a test event, into a CloudEvent.
pub(super) fn event(text: &str, members: &Members<'_>) -> Result<String, Unconverted> {
    if is_test(members) {
        return test_event(text.trim(), members).map_err(|why| Unconverted::new(text.trim(), why));
    }
    match records(members).as_deref() {
        Ok([record, ..]) => {
            of_record(record.get()).map_err(|why| Unconverted::new(record.get(), why))
        }
        Ok([]) => Err(Unconverted::new(text, "Records is an empty list")),
        Err(why) => Err(Unconverted::new(text, why)),
    }
}

fn is_test(members: &Members<'_>) -> bool {
    members.text("Event").is_some_and(|event| event == TEST_EVENT)
        && non_empty(members, "Bucket").is_some()
}

fn records<'a>(members: &Members<'a>) -> Result<Vec<&'a RawValue>, String> {
    let list = members.get("Records").and_then(|list| serde_json::from_str(list).ok());
    list.ok_or_else(|| "Records must be a list".to_owned())
}

/// Converts one record of a notification into a CloudEvent, whose data is the whole record.
fn of_record(record: &str) -> Result<String, String> {
    Members::parse(record).map_err(|why| why.to_string()).and_then(|members| {
        let s3 = object(&members, "s3").ok_or("s3 must be an object")?;
        let bucket = object(&s3, "bucket").ok_or("s3.bucket must be an object")?;
        let response = object(&members, "responseElements").unwrap_or_default();
        let stored = object(&s3, "object").unwrap_or_default();
        let request = required(&response, "x-amz-request-id")?;
        let (from, at) = (required(&members, "eventSource")?, non_empty(&members, "awsRegion"));
        let name = required(&members, "eventName")?;
        let attributes = [
            ("type", Some(joined(&[Some("\"com.amazonaws.s3\""), Some(name)], "."))),
            ("source", Some(joined(&[Some(from), at, Some(required(&bucket, "name")?)], "."))),
            ("id", Some(joined(&[Some(request), non_empty(&response, "x-amz-id-2")], "."))),
            ("time", non_empty(&members, "eventTime").map(ToOwned::to_owned)),
            ("subject", non_empty(&stored, "key").map(ToOwned::to_owned)),
        ];
        let attributes = attributes.each_ref().map(|(name, value)| (*name, value.as_deref()));
        Ok(cloud_event(&attributes, record))
    })
}

/// Converts a test event into a CloudEvent, whose data is the whole test event. The `source` has no
/// region, because a test event contains none.
fn test_event(text: &str, members: &Members<'_>) -> Result<String, String> {
    required(members, "RequestId").map(|request| {
        let source = joined(&[Some("\"aws:s3\""), non_empty(members, "Bucket")], ".");
        let id = joined(&[Some(request), non_empty(members, "HostId")], ".");
        let attributes = [
            ("type", Some("\"com.amazonaws.s3.TestEvent\"")),
            ("source", Some(source.as_str())),
            ("id", Some(id.as_str())),
            ("time", non_empty(members, "Time")),
        ];
        cloud_event(&attributes, text)
    })
}

/// Returns the nested members of the member `name`; `None` if its value is not an object.
fn object<'a>(members: &Members<'a>, name: &str) -> Option<Members<'a>> {
    members
        .get(name)
        .filter(|value| value.starts_with('{'))
        .and_then(|value| Members::parse(value).ok())
}
