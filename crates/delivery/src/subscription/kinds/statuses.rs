//! Reads sets of HTTP statuses, and merges them into a retry policy.
//!
//! This module is separate because every dialect can override the meaning of a status, with fields
//! of its own.

use std::ops::RangeInclusive;

use serde_json::{Value as Json, json};

use crate::document::declaration::{Declaration, Shown, text as joined};
use crate::document::findings::{Message, quoted};
use crate::document::kind::Kind;
use crate::document::reader::{Cursor, Fields};
use crate::document::record::Presence;
use crate::subscription::bounds::LIFETIME_MAX_MS;
use crate::subscription::status_set::StatusSet;
use crate::time::duration::format_ms;

/// Range of valid HTTP statuses.
pub const STATUSES: RangeInclusive<u16> = 100..=599;

/// Reads a list of statuses such as `202`, and of ranges such as `200-299`.
pub fn list(cursor: &Cursor<'_>) -> Option<StatusSet> {
    cursor.each(|element| range_of(&element.scalar()?, element)).map(StatusSet::new)
}

/// Reads statuses and ranges from one string, separated by commas.
pub fn text(cursor: &Cursor<'_>) -> Option<StatusSet> {
    let text = cursor.scalar()?;
    let ranges: Vec<_> = text.split(',').map(|part| range_of(part.trim(), cursor)).collect();
    Some(StatusSet::new(ranges.into_iter().collect::<Option<Vec<_>>>()?))
}

/// Parses one status, which must be from 100 to 599.
pub fn status(text: &str) -> Option<u16> {
    let digits = text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|status| digits && STATUSES.contains(status))
}

fn range_of(text: &str, at: &Cursor<'_>) -> Option<RangeInclusive<u16>> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match (status(first.trim()), status(last.trim())) {
        (Some(first), Some(last)) if first <= last => Some(first..=last),
        (_, _) => {
            let message =
                Message::new(format!("{} is not a status or a range of statuses", quoted(text)));
            at.refuse(message.help("expected a status from 100 to 599, or a range such as 200-299"))
        }
    }
}

/// The names of the fields that determine the meaning of statuses.
const LISTS: [&str; 3] = ["success", "neverRetry", "retryOn"];

/// The presence rule of a field that determines the meaning of statuses.
///
/// - The value is the list of the first document that states the field.
/// - Statuses that an earlier document lists in any of the three fields are removed from the list.
/// - The last document has the defaults. They apply to statuses that no earlier document lists.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// The listed statuses mean that the event is delivered.
    Success,
    /// The listed statuses are never retried.
    NeverRetry,
    /// The listed statuses are retried, even if the defaults never retry them.
    RetryOn,
}

/// Merges the lists `success`, `neverRetry` and `retryOn` of these documents.
fn stated(documents: &[Cursor<'_>]) -> [Option<StatusSet>; 3] {
    let mut lists = [None, None, None];
    let mut listed = StatusSet::default();
    for document in documents {
        let of_document = LISTS.map(|name| list_in(document, name));
        for (found, list) in lists.iter_mut().zip(&of_document) {
            if let (None, Some(list)) = (&found, list) {
                *found = Some(list.difference(&listed));
            }
        }
        listed = of_document.iter().flatten().fold(listed, |all, list| all.with(list));
    }
    lists
}

/// Reads a list without reporting findings, because they have been reported before.
fn list_in(document: &Cursor<'_>, name: &str) -> Option<StatusSet> {
    document.peek(name).and_then(|at| list(&at.silent()))
}

impl Presence for Meaning {
    type Value = StatusSet;

    fn read(&self, fields: &Fields<'_>, name: &'static str) -> Option<StatusSet> {
        if let Some(own) = fields.own(name) {
            self.check(&own, fields)?;
        }
        let documents = fields.documents();
        let (base, documents) = documents.split_last()?;
        let of_base = |name| list_in(base, name).unwrap_or_default();
        let [success, never_retry, retry_on] = stated(documents);
        let changed =
            never_retry.clone().unwrap_or_default().with(&retry_on.clone().unwrap_or_default());
        let retry_on = retry_on.unwrap_or_else(|| of_base("retryOn"));
        Some(match self {
            Self::Success => {
                let success = success.unwrap_or_else(|| of_base("success")).difference(&changed);
                // If two lists of one document share a status, a separate finding reports that.
                // Then the finding about missing successes is skipped.
                let has_finding = || {
                    let own_success = list_in(fields.parent(), "success").unwrap_or_default();
                    let others =
                        ["neverRetry", "retryOn"].map(|name| list_in(fields.parent(), name));
                    others.iter().flatten().any(|other| other.first_shared(&own_success).is_some())
                };
                if success == StatusSet::default() && !has_finding() {
                    let message = Message::new("no status counts as success")
                        .help("remove a status of success from neverRetry and retryOn");
                    return fields.parent().refuse(message);
                }
                success
            }
            Self::NeverRetry => {
                of_base("neverRetry").with(&never_retry.unwrap_or_default()).difference(&retry_on)
            }
            Self::RetryOn => retry_on,
        })
    }

    fn write(&self, value: &StatusSet) -> Option<Json> {
        (*value != StatusSet::default()).then(|| json!(value.ranges()))
    }

    fn shown(&self, value: &StatusSet) -> Option<Json> {
        self.write(value)
    }

    fn declare(&self, name: &'static str, about: &[&str]) -> Declaration {
        let mut schema = json!({ "type": "array", "items": { "$ref": "#/$defs/statuses" } });
        if *self == Self::Success {
            schema["minItems"] = json!(1);
        }
        let about = joined(about);
        Declaration { name, about, is_required: false, default: None, schema, fields: Vec::new() }
    }

    fn show(&self, path: String, value: &StatusSet, shown: &mut Vec<Shown>) {
        let ranges = value.ranges();
        let text = if ranges.is_empty() { "no status".to_owned() } else { ranges.join(" ") };
        shown.push(Shown { path, value: json!(ranges), text });
    }
}

impl Meaning {
    /// Reports errors in the list of one document.
    fn check(&self, own: &Cursor<'_>, fields: &Fields<'_>) -> Option<()> {
        let stated = list(own)?;
        if *self == Self::Success && stated == StatusSet::default() {
            return own.refuse("at least one status must count as success");
        }
        for other in LISTS.iter().take(*self as usize) {
            let earlier = list_in(fields.parent(), other);
            if let Some(status) = earlier.and_then(|earlier| stated.first_shared(&earlier)) {
                own.error(format!("{status} is also in {other}; remove it from one list"));
            }
        }
        Some(())
    }
}

/// The field type of the field `leastWaits`: minimum waits by status. They replace the waits of
/// other documents as a whole.
pub struct LeastWaits;

impl Kind for LeastWaits {
    type Value = Vec<(u16, u64)>;

    fn read(&self, at: &Cursor<'_>) -> Option<Self::Value> {
        let mut waits = Vec::new();
        for entry in at.entries()? {
            let status = status(entry.name);
            if status.is_none() {
                let message = Message::new(format!("{} is not a status", quoted(entry.name)));
                entry.key.error(message.help("expected a status from 100 to 599"));
            }
            let wait_ms = entry.value.duration_ms(1..=LIFETIME_MAX_MS);
            waits.extend(status.zip(wait_ms));
        }
        waits.sort_unstable();
        Some(waits)
    }

    fn write(&self, value: &Self::Value) -> Json {
        let waits = value.iter().map(|(status, ms)| (status.to_string(), json!(format_ms(*ms))));
        Json::Object(waits.collect())
    }

    fn schema(&self) -> Json {
        json!({
            "type": "object",
            "propertyNames": { "pattern": "^[1-5][0-9]{2}$" },
            "additionalProperties": { "$ref": "#/$defs/duration" },
        })
    }
}
