//! Event notifications of Amazon S3, as a bucket sends them to a queue.
//!
//! One notification has a list of records, and each is an event. Ids follow the adapter: those of
//! the request, so the events of one request that deletes many objects share an id and differ in
//! `subject`. The test event that S3 sends when notifications are set up is delivered too: it shows
//! that the route to the subscriber works.
//! <https://github.com/cloudevents/spec/blob/main/cloudevents/adapters/aws-s3.md>,
//! <https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-content-structure.html>

use serde_json::value::RawValue;

use super::{Converted, cloud_event, joined, non_empty, required};
use crate::event::Members;
use crate::event::envelope::Publisher;

/// `Event` of the message that S3 sends when a notification is set up.
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

pub(super) fn events(text: &str, members: &Members<'_>) -> Result<Vec<Converted>, String> {
    if is_test(members) {
        return Ok(vec![test_event(text.trim(), members)]);
    }
    let records = records(members)?;
    if records.is_empty() {
        return Err("Records is an empty list".to_owned());
    }
    Ok(records.into_iter().map(|record| event(record.get())).collect())
}

fn is_test(members: &Members<'_>) -> bool {
    members.text("Event").is_some_and(|event| event == TEST_EVENT)
        && non_empty(members, "Bucket").is_some()
}

fn records<'a>(members: &Members<'a>) -> Result<Vec<&'a RawValue>, String> {
    let list = members.get("Records").and_then(|list| serde_json::from_str(list).ok());
    list.ok_or_else(|| "Records has to be a list".to_owned())
}

/// One record as an event; the record itself stays the data.
fn event(record: &str) -> Converted {
    let converted = Members::parse(record).map_err(|why| why.to_string()).and_then(|members| {
        let s3 = object(&members, "s3").ok_or("s3 has to be an object")?;
        let bucket = object(&s3, "bucket").ok_or("s3.bucket has to be an object")?;
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
    });
    converted.map_err(|why: String| (record.to_owned(), why))
}

/// The test event names no region; its other fields are mapped like those of a record.
fn test_event(text: &str, members: &Members<'_>) -> Converted {
    let converted = required(members, "RequestId").map(|request| {
        let source = joined(&[Some("\"aws:s3\""), non_empty(members, "Bucket")], ".");
        let id = joined(&[Some(request), non_empty(members, "HostId")], ".");
        let attributes = [
            ("type", Some("\"com.amazonaws.s3.TestEvent\"")),
            ("source", Some(source.as_str())),
            ("id", Some(id.as_str())),
            ("time", non_empty(members, "Time")),
        ];
        cloud_event(&attributes, text)
    });
    converted.map_err(|why| (text.to_owned(), why))
}

/// A member that is an object.
fn object<'a>(members: &Members<'a>, name: &str) -> Option<Members<'a>> {
    members
        .get(name)
        .filter(|value| value.starts_with('{'))
        .and_then(|value| Members::parse(value).ok())
}
