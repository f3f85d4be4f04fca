//! Reads `retry.schedule`: the waits between attempts, as a `kind` and its parameters.
//!
//! This module is separate because each kind of schedule has parameters of its own. A parameter of
//! another kind is an error. A schedule is one value: the schedule of a Subscription replaces that
//! of its Topic as a whole.

use std::sync::Arc;

use serde_json::{Value as Json, json};

use crate::document::findings::Message;
use crate::document::kind::{self, DEFINITION};
use crate::document::reader::{Cursor, Fields, read_each};
use crate::document::record::Shown;
use crate::subscription::bounds::LIFETIME_MAX_MS;
use crate::time::duration::{HOUR_MS, SECOND_MS, format_ms};
use crate::waits::{Kind, Schedule};

/// Maximum number of waits or moments in a list. Longer lists would be hard to read.
const WAITS_MAX: usize = 100;
/// Default value of `delay`, for every kind of schedule that has this field.
const DELAY_DEFAULT_MS: u64 = SECOND_MS;
/// Default value of `max`, for linear and exponential schedules.
const MAX_DEFAULT_MS: u64 = HOUR_MS;

/// The field that contains the waits of a schedule kind, and the function that reads the kind.
type KindFields = (&'static str, fn(&Fields<'_>) -> Option<Kind>);

/// The names of the ways to number retries. The second value is true if the first retry has number
/// 0 in the formula.
const NUMBERINGS: [(&str, bool); 2] = [("fromOne", false), (FROM_ZERO, true)];
const FROM_ZERO: &str = "fromZero";

/// The kinds of schedules, by their names in documents.
const KINDS: [(&str, KindFields); 5] = [
    ("linear", ("delay", |fields| delay_ms(fields).map(|delay_ms| Kind::Linear { delay_ms }))),
    ("exponential", EXPONENTIAL),
    ("constant", ("delay", |fields| delay_ms(fields).map(|delay_ms| Kind::Constant { delay_ms }))),
    (
        "waits",
        ("waits", |fields| durations(fields, "waits").map(|waits_ms| Kind::Waits { waits_ms })),
    ),
    (
        "moments",
        ("moments", |fields| rising(fields).map(|moments_ms| Kind::Moments { moments_ms })),
    ),
];
const EXPONENTIAL: KindFields =
    ("delay", |fields| delay_ms(fields).map(|delay_ms| Kind::Exponential { delay_ms }));

/// The field type of the field `schedule`. Schedules of several documents are not merged: the first
/// one applies as a whole.
pub struct Waits;

impl kind::Kind for Waits {
    type Value = Schedule;

    const NULL_IS_ABSENT: bool = true;

    fn read(&self, at: &Cursor<'_>) -> Option<Schedule> {
        at.mapping(read)?
    }

    fn write(&self, value: &Schedule) -> Json {
        written(value)
    }

    fn schema(&self) -> Json {
        let mut schema = json!({
            DEFINITION: "Schedule",
            "type": ["object", "null"],
            "additionalProperties": false,
        });
        schema["properties"] = properties();
        schema["allOf"] = ["waits", "moments"].into_iter().map(needs_list).collect();
        schema
    }

    fn show(&self, path: String, value: &Schedule, shown: &mut Vec<Shown>) {
        shown.push(Shown { path, value: written(value), text: describe(value) });
    }
}

/// Reads a schedule. The default of `kind` is exponential, and that of `delay` is PT1S.
fn read(fields: &Fields<'_>) -> Option<Schedule> {
    let kind = match fields.get("kind") {
        Some(cursor) => cursor.choice(&KINDS),
        None => Some(EXPONENTIAL),
    };
    let max_ms = fields.get("max").map(|cursor| cursor.duration_ms(1..=LIFETIME_MAX_MS));
    let numbering = fields.get("numbering").map(|cursor| (cursor.choice(&NUMBERINGS), cursor));
    let kinds_fields = ["delay", "waits", "moments"].map(|field| (field, fields.key(field)));
    // An invalid kind ends reading only now, so that the fields above are not reported as unknown.
    let (own, read) = kind?;
    for (field, key) in &kinds_fields {
        if let Some(key) = key.as_ref().filter(|_| *field != own) {
            let message = Message::new(format!("{field} is not allowed for this kind of schedule"));
            key.error(
                message.help(format!(
                    "kind: {}",
                    if *field == "delay" { "exponential" } else { field }
                )),
            );
        }
    }
    let kind = match numbering {
        Some((from_zero, at)) => numbered(read(fields)?, from_zero?, &at)?,
        None => read(fields)?,
    };
    capped(fields, kind, max_ms)
}

/// Returns the kind with retries numbered from zero if `from_zero` is true, and from one otherwise.
/// Reports an error if the kind allows no numbering.
fn numbered(kind: Kind, from_zero: bool, at: &Cursor<'_>) -> Option<Kind> {
    match kind {
        Kind::Linear { delay_ms } if from_zero => Some(Kind::LinearFromZero { delay_ms }),
        Kind::Exponential { delay_ms } if from_zero => Some(Kind::ExponentialFromZero { delay_ms }),
        Kind::Linear { .. }
        | Kind::Exponential { .. }
        | Kind::LinearFromZero { .. }
        | Kind::ExponentialFromZero { .. } => Some(kind),
        Kind::Constant { .. } | Kind::Waits { .. } | Kind::Moments { .. } => at.refuse(
            Message::new("numbering is not allowed for this kind of schedule")
                .help("kind: exponential"),
        ),
    }
}

fn delay_ms(fields: &Fields<'_>) -> Option<u64> {
    fields
        .get("delay")
        .map_or(Some(DELAY_DEFAULT_MS), |cursor| cursor.duration_ms(0..=LIFETIME_MAX_MS))
}

/// Returns the schedule with the cap on its waits. A delay above the cap is refused, because it
/// would never apply.
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
            format!("delay ({}) is greater than max ({})", format_ms(delay_ms), format_ms(max_ms));
        let missing = "the default of max is PT1H";
        return fields.parent().refuse(if fields.get("max").is_some() {
            message.into()
        } else {
            Message::new(message).help(missing)
        });
    }
    // A cap at the maximum lifetime has no effect, because no wait can be longer.
    Some(Schedule { kind, max_ms: max_ms.filter(|max_ms| *max_ms < LIFETIME_MAX_MS) })
}

fn durations(fields: &Fields<'_>, name: &'static str) -> Option<Arc<[u64]>> {
    let cursor = fields.required(name)?;
    let elements = cursor.list()?;
    if elements.is_empty() || elements.len() > WAITS_MAX {
        return cursor.refuse(format!(
            "must be a list of 1 to {WAITS_MAX} durations, but has {}",
            elements.len()
        ));
    }
    read_each(&elements, |element| element.duration_ms(1..=LIFETIME_MAX_MS)).map(Into::into)
}

fn rising(fields: &Fields<'_>) -> Option<Arc<[u64]>> {
    let moments_ms = durations(fields, "moments")?;
    let elements = fields.get("moments")?.list()?;
    for (pair, later) in moments_ms.windows(2).zip(&elements[1..]) {
        if pair[0] >= pair[1] {
            return later.refuse("must be later than the previous moment");
        }
    }
    Some(moments_ms)
}

/// Returns the parts of a kind: its name, true if retries are numbered from zero, and the name and
/// value of its parameter.
fn parts(kind: &Kind) -> (&'static str, bool, (&'static str, Vec<String>)) {
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

/// Returns a schedule as a document states it.
fn written(schedule: &Schedule) -> Json {
    let (kind, from_zero, (parameter, values)) = parts(&schedule.kind);
    let is_growing = matches!(kind, "linear" | "exponential");
    let of_kind = if parameter == "delay" { json!(values.first()) } else { json!(values) };
    let mut written = json!({ "kind": kind, parameter: of_kind });
    if from_zero {
        written["numbering"] = json!(FROM_ZERO);
    }
    // Linear and exponential schedules have a default cap, so one without a cap must state the
    // maximum lifetime.
    let max_ms = schedule.max_ms.or(is_growing.then_some(LIFETIME_MAX_MS));
    if let Some(max_ms) = max_ms {
        written["max"] = json!(format_ms(max_ms));
    }
    written
}

/// Describes a schedule in words, for people.
fn describe(schedule: &Schedule) -> String {
    let (kind, from_zero, (_, values)) = parts(&schedule.kind);
    let numbering = if from_zero { ", numbered from zero" } else { "" };
    let cap =
        schedule.max_ms.map_or(String::new(), |max_ms| format!(", at most {}", format_ms(max_ms)));
    format!("{kind} {}{numbering}{cap}", values.join(" "))
}

/// Returns the properties of a schedule for the JSON Schema.
fn properties() -> Json {
    let duration = |about: &str| json!({ "description": about, "$ref": "#/$defs/duration" });
    let durations = |about: &str| json!({ "description": about, "$ref": "#/$defs/durations" });
    let mut delay = duration("Delay d of linear, exponential and constant; PT0S means no wait.");
    delay["default"] = json!(format_ms(DELAY_DEFAULT_MS));
    json!([
        ["kind", {
            "description": "Formula of the wait before retry k, with delay d: linear is d·k, exponential is d·2^k, constant is d. waits and moments are lists.",
            "enum": KINDS.map(|(kind, _)| kind),
            "default": "exponential",
        }],
        ["delay", delay],
        ["numbering", {
            "description": "Number k of the first retry, for linear and exponential. With delay PT5S, the first exponential wait is PT10S (fromOne) or PT5S (fromZero).",
            "enum": NUMBERINGS.map(|(word, _)| word),
            "default": "fromOne",
        }],
        ["waits", durations("List for kind waits, such as [PT10S, PT1M]. The last wait repeats.")],
        ["moments", durations("List for kind moments: times since the first attempt, in rising order. After the last time, the last interval repeats.")],
        ["max", duration("Maximum wait of the schedule; P14D means no limit. If kind is linear or exponential and max is missing, it is PT1H.")],
    ])
}

/// Returns a JSON Schema rule for schedules of the kind `waits` or `moments`. It requires the list
/// with the name of the kind, and forbids `delay`, `numbering` and the other list.
fn needs_list(kind: &str) -> Json {
    let other = if kind == "waits" { "moments" } else { "waits" };
    json!({
        "if": { "required": ["kind"], "properties": [["kind", { "const": kind }]] },
        "then": {
            "required": [kind],
            "not": { "anyOf": [{ "required": ["delay"] }, { "required": ["numbering"] }, { "required": [other] }] },
        },
    })
}
