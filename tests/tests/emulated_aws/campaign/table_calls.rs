//! Counts the functions' calls of the table, and holds the trouble that the table has.
//!
//! Separate from the gateway's faults of queues, which happen by chance: a test begins and ends a trouble of the table.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, header, request::Parts};
use bytes::Bytes;
use serde_json::Value;

/// The delay of each answer of a slow table.
pub(super) const SLOW: Duration = Duration::from_secs(2);

/// A fault of the table that lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// Each call's connection is closed without an answer.
    Unreachable,
    /// Each call is refused.
    Throttled,
    /// Each call is carried out, and its answer comes two seconds later.
    Slow,
}

/// A call of the table: its operation, what its item is about, and the status of the
/// answer.
pub(crate) type TableCall = (String, &'static str, u16);

/// The calls so far.
#[derive(Debug, Default)]
pub(super) struct TableCalls {
    counts: Mutex<BTreeMap<TableCall, usize>>,
    trouble: Mutex<Option<Trouble>>,
    /// The processes whose calls met the trouble. `None` stands for those that had gone on before they were looked for.
    disturbed: Mutex<BTreeSet<Option<String>>>,
}

impl TableCalls {
    pub(super) fn count(&self, call: TableCall) {
        *locked(&self.counts).entry(call).or_default() += 1;
    }

    pub(super) fn counts(&self) -> BTreeMap<TableCall, usize> {
        locked(&self.counts).clone()
    }

    /// Replaces the trouble, and forgets the processes that met the one before.
    pub(super) fn disturb(&self, trouble: Option<Trouble>) {
        locked(&self.disturbed).clear();
        *locked(&self.trouble) = trouble;
    }

    pub(super) fn trouble(&self) -> Option<Trouble> {
        *locked(&self.trouble)
    }

    pub(super) fn note_disturbed(&self, process: Option<String>) {
        locked(&self.disturbed).insert(process);
    }

    pub(super) fn disturbed(&self) -> BTreeSet<Option<String>> {
        locked(&self.disturbed).clone()
    }
}

fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The operation of a call of DynamoDB, and what its item is about.
pub(super) fn table_call(head: &Parts, body: &Bytes) -> Option<(String, &'static str)> {
    let target = head.headers.get("x-amz-target")?.to_str().ok()?;
    let operation = target.strip_prefix("DynamoDB_20120810.")?;
    let call: Value = serde_json::from_slice(body).unwrap_or_default();
    let key = |part: &str| call["Key"][part]["S"].as_str().unwrap_or_default();
    let kind = match (key("pk"), key("sk")) {
        (_, sort) if sort.ends_with("#health") => "health",
        (_, sort) if sort.ends_with("#limits") => "limits",
        (_, sort) if sort.ends_with("#consent") => "consent",
        _ => "news",
    };
    Some((operation.to_owned(), kind))
}

/// DynamoDB's answer when a table gets too many requests.
/// <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.Errors.html>
pub(super) fn throttled() -> Response<Body> {
    let body = r#"{"__type": "com.amazonaws.dynamodb.v20120810#ThrottlingException", "message": "the test"}"#;
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = StatusCode::BAD_REQUEST;
    let json = HeaderValue::from_static("application/x-amz-json-1.0");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}
