//! `retry.schedule`: the waits between attempts, as a kind and its parameters.
//!
//! Separate because each kind has parameters of its own, and a parameter of another kind is an
//! error. A schedule is one field: a Subscription's replaces its Topic's as a whole.

use std::sync::Arc;

use super::super::findings::Message;
use super::super::reader::{Fields, read_each};
use crate::subscription::profile::LIFETIME_MAX_MS;
use crate::subscription::schedule::{Kind, Schedule};
use crate::time::duration::{HOUR_MS, SECOND_MS, format_ms};

/// The longest list of waits or moments, so that it stays readable.
const WAITS_MAX: usize = 100;
/// `delay` where a schedule names none.
const DELAY_DEFAULT_MS: u64 = SECOND_MS;
/// `max` where a linear or exponential schedule names none.
const MAX_DEFAULT_MS: u64 = HOUR_MS;

/// The field that holds the waits of a kind, and how the kind is read.
type KindFields = (&'static str, fn(&Fields<'_>) -> Option<Kind>);

/// The kinds of schedules that a file can name.
const KINDS: [(&str, KindFields); 5] = [
    ("linear", ("delay", |of| delay_ms(of).map(|delay_ms| Kind::Linear { delay_ms }))),
    ("exponential", EXPONENTIAL),
    ("constant", ("delay", |of| delay_ms(of).map(|delay_ms| Kind::Constant { delay_ms }))),
    ("waits", ("waits", |of| durations(of, "waits").map(|waits_ms| Kind::Waits { waits_ms }))),
    ("moments", ("moments", |of| rising(of).map(|moments_ms| Kind::Moments { moments_ms }))),
];
const EXPONENTIAL: KindFields =
    ("delay", |of| delay_ms(of).map(|delay_ms| Kind::Exponential { delay_ms }));

/// Reads a schedule; a missing `kind` is exponential, a missing `delay` is PT1S, each on its own.
pub(super) fn read(fields: &Fields<'_>) -> Option<Schedule> {
    let kind = match fields.get("kind") {
        Some(cursor) => cursor.choice(&KINDS),
        None => Some(EXPONENTIAL),
    };
    let max_ms = fields.get("max").map(|cursor| cursor.duration_ms(1..=LIFETIME_MAX_MS));
    let kinds_fields = ["delay", "waits", "moments"].map(|field| (field, fields.key(field)));
    // Not before: the other fields are marked as known even if the kind is not.
    let (own, read) = kind?;
    for (field, key) in &kinds_fields {
        if let Some(key) = key.as_ref().filter(|_| *field != own) {
            let message = Message::new(format!("{field} does not belong to this kind of schedule"));
            key.error(
                message.help(format!(
                    "kind: {}",
                    if *field == "delay" { "exponential" } else { field }
                )),
            );
        }
    }
    capped(fields, read(fields)?, max_ms)
}

fn delay_ms(fields: &Fields<'_>) -> Option<u64> {
    fields
        .get("delay")
        .map_or(Some(DELAY_DEFAULT_MS), |cursor| cursor.duration_ms(1..=LIFETIME_MAX_MS))
}

/// The schedule with its cap. A delay above the cap would never apply, so it is refused.
fn capped(fields: &Fields<'_>, kind: Kind, max_ms: Option<Option<u64>>) -> Option<Schedule> {
    let (delay_ms, default_ms) = match kind {
        Kind::Linear { delay_ms }
        | Kind::Exponential { delay_ms }
        | Kind::LinearFromZero { delay_ms }
        | Kind::ExponentialFromZero { delay_ms } => (delay_ms, Some(MAX_DEFAULT_MS)),
        Kind::Constant { delay_ms } => (delay_ms, None),
        Kind::Waits { .. } | Kind::Moments { .. } => (0, None),
    };
    let max_ms = match max_ms {
        Some(max_ms) => Some(max_ms?),
        None => default_ms,
    };
    if let Some(max_ms) = max_ms.filter(|max_ms| delay_ms > *max_ms) {
        let message =
            format!("delay is {}, which is above max, {}", format_ms(delay_ms), format_ms(max_ms));
        let missing = "max is PT1H where it is missing";
        return fields.parent().refuse(if fields.get("max").is_some() {
            message.into()
        } else {
            Message::new(message).help(missing)
        });
    }
    Some(Schedule { kind, max_ms })
}

fn durations(fields: &Fields<'_>, name: &'static str) -> Option<Arc<[u64]>> {
    let cursor = fields.required(name)?;
    let elements = cursor.list()?;
    if elements.is_empty() || elements.len() > WAITS_MAX {
        return cursor
            .refuse(format!("has to be a list of 1 to {WAITS_MAX}, has {}", elements.len()));
    }
    read_each(&elements, |element| element.duration_ms(1..=LIFETIME_MAX_MS)).map(Into::into)
}

fn rising(fields: &Fields<'_>) -> Option<Arc<[u64]>> {
    let moments_ms = durations(fields, "moments")?;
    let elements = fields.get("moments")?.list()?;
    for (pair, later) in moments_ms.windows(2).zip(&elements[1..]) {
        if pair[0] >= pair[1] {
            return later.refuse("has to be later than the one before it");
        }
    }
    Some(moments_ms)
}
