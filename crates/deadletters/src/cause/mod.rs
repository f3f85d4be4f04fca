//! Why deliveries failed, as groups: destination × outcome × status × what the response says, without
//! what varies from one response to the next. Pure.
//!
//! Separate from its two parts: [`message`] finds the texts of a response that count, [`template`]
//! replaces ids, numbers, times and the like in them. Here they become one line, and lines groups.
//!
//! Promises: dead letters of which only such details differ are one cause, in whatever order they are added.

mod message;
mod template;

use std::collections::HashMap;

use delivery::deadletter::stored::{FailedAt, Failure, StoredDeadLetter};
use serde_json::json;
use uuid::Uuid;

use self::message::Message;
use crate::filter::decided_ms;

/// What the dead letters of one group have in common.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CauseKey {
    /// Who failed last.
    pub at: FailedAt,
    /// The URL of the destination, the address for replies or the sink.
    pub destination: Option<String>,
    /// The last outcome.
    pub outcome: Option<String>,
    /// The last HTTP status.
    pub status: Option<u16>,
    /// What the last response says went wrong: code, title and texts of JSON, the title of a page, else
    /// the first line; of an empty one the first line of the detail, else the reason. `#` stands for ids
    /// and numbers, `…` for quoted values, and there are `<time>`, `<email>` and `<address>`.
    pub line: String,
}

impl CauseKey {
    /// A name for the cause that is the same in every run: 32 hexadecimal digits.
    #[must_use]
    pub fn id(&self) -> String {
        let Self { at, destination, outcome, status, line } = self;
        let name = match at {
            // As it was before others could be blamed.
            FailedAt::Destination => json!([destination, outcome, status, line]),
            FailedAt::Reply | FailedAt::Sink => json!([at, destination, outcome, status, line]),
        };
        Uuid::new_v5(&CAUSES, name.to_string().as_bytes()).simple().to_string()
    }
}

/// The namespace of the ids of causes.
const CAUSES: Uuid = Uuid::from_u128(0x9d2b_6f1c_53f0_4c8e_a7c4_1e0f_6b82_d935);

/// Dead letters that failed in the same way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// What they have in common.
    pub key: CauseKey,
    /// How many there are.
    pub count: u64,
    /// When the first of them ended.
    pub first_ms: Option<u64>,
    /// When the last of them ended.
    pub last_ms: Option<u64>,
    /// The newest of them.
    pub example: Uuid,
}

/// Groups dead letters one by one.
#[derive(Debug, Default)]
pub struct Causes(HashMap<CauseKey, Cause>);

impl Causes {
    /// Adds a dead letter to its group.
    pub fn add(&mut self, letter: &StoredDeadLetter) {
        let failure = letter.failure();
        let key = CauseKey {
            at: failure.at,
            destination: failure.destination.map(ToOwned::to_owned),
            outcome: failure.outcome.map(ToOwned::to_owned),
            status: failure.status,
            line: line(&failure),
        };
        let at_ms = decided_ms(letter);
        let new = || Cause {
            key: key.clone(),
            count: 0,
            first_ms: at_ms,
            last_ms: at_ms,
            example: letter.id,
        };
        let cause = self.0.entry(key.clone()).or_insert_with(new);
        cause.count += 1;
        cause.first_ms = [cause.first_ms, at_ms].into_iter().flatten().min();
        // The id breaks ties: the example must not depend on the order of reading.
        if (at_ms, letter.id) > (cause.last_ms, cause.example) {
            (cause.last_ms, cause.example) = (at_ms, letter.id);
        }
    }

    /// The causes, the most frequent first.
    #[must_use]
    pub fn sorted(self) -> Vec<Cause> {
        let mut causes: Vec<Cause> = self.0.into_values().collect();
        causes.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.key.cmp(&b.key)));
        causes
    }
}

fn line(failure: &Failure<'_>) -> String {
    let response = failure.last_response.map(message::read);
    let detail = || failure.detail.and_then(message::first_line);
    let of_response = response.map(|message| summary(message, failure.status));
    let line = of_response.filter(|line| !line.is_empty());
    line.or_else(|| detail().map(|detail| template::of(&detail)))
        .unwrap_or_else(|| template::cut(failure.reason.to_owned()))
}

/// What a response says, in one line: each text once, and not the status, which the group has.
fn summary(Message { code, texts }: Message, status: Option<u16>) -> String {
    let status = status.map(|status| status.to_string()).unwrap_or_default();
    let code = code.filter(|code| *code != status);
    let mut parts: Vec<String> = code.as_deref().map(template::of_code).into_iter().collect();
    for text in texts {
        let repeated = text.strip_prefix(&status).filter(|text| text.starts_with(' '));
        let part = template::of(repeated.unwrap_or(&text));
        if !parts.contains(&part) {
            parts.push(part);
        }
    }
    template::cut(parts.join(" · "))
}

#[cfg(test)]
mod tests;
