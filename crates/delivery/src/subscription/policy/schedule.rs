//! How a schedule of retries is shown, in the words of the native dialect.

use serde_json::{Value, json};

use crate::subscription::schedule::{Kind, Schedule};
use crate::time::duration::format_ms;

/// The name of a kind of schedule, whether it numbers retries from zero, and its parameter.
fn kind_parts(kind: &Kind) -> (&'static str, bool, (&'static str, Vec<String>)) {
    let delay = |delay_ms: &u64| ("delay", vec![format_ms(*delay_ms)]);
    let list = |all_ms: &[u64]| all_ms.iter().map(|ms| format_ms(*ms)).collect();
    match kind {
        Kind::Linear { delay_ms } => ("linear", false, delay(delay_ms)),
        Kind::Exponential { delay_ms } => ("exponential", false, delay(delay_ms)),
        Kind::LinearFromZero { delay_ms } => ("linear", true, delay(delay_ms)),
        Kind::ExponentialFromZero { delay_ms } => ("exponential", true, delay(delay_ms)),
        Kind::Constant { delay_ms } => ("constant", false, delay(delay_ms)),
        Kind::Waits { waits_ms } => ("waits", false, ("waits", list(waits_ms))),
        Kind::Moments { moments_ms } => ("moments", false, ("moments", list(moments_ms))),
    }
}

pub(super) fn schedule_value(schedule: &Schedule) -> Value {
    let (kind, from_zero, (parameter, values)) = kind_parts(&schedule.kind);
    let mut value = serde_json::Map::new();
    value.insert("kind".to_owned(), json!(kind));
    let of_kind = if parameter == "delay" { json!(values.first()) } else { json!(values) };
    value.insert(parameter.to_owned(), of_kind);
    if from_zero {
        value.insert("numbering".to_owned(), json!("from zero"));
    }
    if let Some(max_ms) = schedule.max_ms {
        value.insert("max".to_owned(), json!(format_ms(max_ms)));
    }
    Value::Object(value)
}

pub(super) fn schedule_text(schedule: &Schedule) -> String {
    let (kind, from_zero, (_, values)) = kind_parts(&schedule.kind);
    let numbering = if from_zero { ", numbered from zero" } else { "" };
    let cap =
        schedule.max_ms.map_or(String::new(), |max_ms| format!(", at most {}", format_ms(max_ms)));
    format!("{kind} {}{numbering}{cap}", values.join(" "))
}
