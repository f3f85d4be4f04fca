//! Differences between sent events and their meaning for an SDK.
//!
//! The list is exact in both directions: a difference that is not listed fails a test, and so does
//! a listed deviation that no longer occurs. `docs/reference/conformance.md` shows the list to
//! authors of subscribers.

use percent_encoding::percent_decode_str;
use serde_json::Value;

use super::events::Mode;
use super::receiver::Sdk;

/// A difference between the sent and the understood event.
#[derive(Debug)]
pub(crate) struct Difference {
    pub(crate) sdk: Sdk,
    pub(crate) mode: Mode,
    pub(crate) event: &'static str,
    /// An attribute, `data`, `$refused` or `$signature`.
    pub(crate) field: String,
    pub(crate) sent: Value,
    pub(crate) seen: Value,
}

/// A known deviation.
pub(crate) struct Deviation {
    pub(crate) sdk: Sdk,
    pub(crate) modes: &'static [Mode],
    pub(crate) events: &'static [&'static str],
    pub(crate) field: &'static str,
    /// The behaviour of the SDK, as the end of a sentence.
    pub(crate) behaviour: &'static str,
    /// Returns true if a difference is this deviation.
    did: fn(&Value, &Value) -> bool,
}

impl Deviation {
    pub(crate) fn explains(&self, difference: &Difference) -> bool {
        self.sdk == difference.sdk
            && self.modes.contains(&difference.mode)
            && self.events.contains(&difference.event)
            && self.field == difference.field
            && (self.did)(&difference.sent, &difference.seen)
    }
}

const BOTH: &[Mode] = &Mode::ALL;
const STRUCTURED: &[Mode] = &[Mode::Structured];
const BINARY: &[Mode] = &[Mode::Binary];

/// Deviations of the SDK for Python.
static PYTHON: &[Deviation] = &[
    Deviation {
        sdk: Sdk::Python,
        modes: BOTH,
        events: &["no-time"],
        field: "time",
        behaviour: "invents the present as `time` of an event without one",
        did: |sent, seen| sent.is_null() && instant_ns(seen).is_some(),
    },
    Deviation {
        sdk: Sdk::Python,
        modes: BINARY,
        events: &["null-time"],
        field: "time",
        behaviour: "invents the present as `time` where it was null, which no header says",
        did: |sent, seen| sent.is_null() && instant_ns(seen).is_some(),
    },
    Deviation {
        sdk: Sdk::Python,
        modes: BOTH,
        events: &["seven-digits", "nine-digits", "event-grid"],
        field: "time",
        behaviour: "cuts `time` to microseconds",
        did: |sent, seen| is_cut_to(sent, seen, 1_000),
    },
    Deviation {
        sdk: Sdk::Python,
        modes: BOTH,
        events: &["no-moment"],
        field: "$refused",
        behaviour: "refuses a `time` that is no RFC 3339",
        did: |_, seen| says(seen, "invalid literal for int()"),
    },
    Deviation {
        sdk: Sdk::Python,
        modes: STRUCTURED,
        events: &["null-subject", "null-time"],
        field: "$refused",
        behaviour: "refuses attributes that are null, which the JSON format allows",
        did: |_, seen| {
            says(seen, "must be a <class 'str'>") || says(seen, "'NoneType' has no len()")
        },
    },
    Deviation {
        sdk: Sdk::Python,
        modes: BOTH,
        events: &["empty-subject"],
        field: "$refused",
        behaviour: "refuses an empty `subject`",
        did: |_, seen| says(seen, "'subject' must not be empty"),
    },
    Deviation {
        sdk: Sdk::Python,
        modes: STRUCTURED,
        events: &["capital-extension"],
        field: "$refused",
        behaviour: "refuses an attribute with capitals in its name; as a header it has none",
        did: |_, seen| says(seen, "should only contain lowercase letters"),
    },
    Deviation {
        sdk: Sdk::Python,
        modes: BINARY,
        events: &["json-by-suffix"],
        field: "data",
        behaviour: "leaves data as text where the content type says JSON in capitals",
        did: |_, seen| seen == "[1, 2 ]",
    },
    Deviation {
        sdk: Sdk::Python,
        modes: BINARY,
        events: &["bytes"],
        field: "$signature",
        behaviour: "`standardwebhooks` verifies only bodies that are UTF-8",
        did: |_, seen| says(seen, "UnicodeDecodeError"),
    },
];

/// Deviations of the SDK for JavaScript.
static NODE: &[Deviation] = &[
    Deviation {
        sdk: Sdk::Node,
        modes: BINARY,
        events: &["exact", "subject", "hard-subject", "event-grid"],
        field: "subject",
        behaviour: "does not decode percent-encoded attributes; their readers have to",
        did: is_encoded,
    },
    Deviation {
        sdk: Sdk::Node,
        modes: BINARY,
        events: &["extensions"],
        field: "text",
        behaviour: "does not decode percent-encoded extensions either",
        did: is_encoded,
    },
    Deviation {
        sdk: Sdk::Node,
        modes: BOTH,
        events: &["no-time", "null-time", "no-moment"],
        field: "time",
        behaviour: "invents the present as `time` where there is none, or none that it reads",
        did: |sent, seen| instant_ns(sent).is_none() && instant_ns(seen).is_some(),
    },
    Deviation {
        sdk: Sdk::Node,
        modes: BOTH,
        events: &["seven-digits", "nine-digits", "event-grid"],
        field: "time",
        behaviour: "cuts `time` to milliseconds, in UTC",
        did: |sent, seen| is_cut_to(sent, seen, 1_000_000),
    },
    Deviation {
        sdk: Sdk::Node,
        modes: BOTH,
        events: &["event-grid-dataschema"],
        field: "$refused",
        behaviour: "refuses a relative `dataschema`, as Event Grid sends it",
        did: |_, seen| says(seen, "/dataschema"),
    },
    Deviation {
        sdk: Sdk::Node,
        modes: STRUCTURED,
        events: &["empty-subject"],
        field: "subject",
        behaviour: "drops an empty `subject`",
        did: |_, seen| seen.is_null(),
    },
    Deviation {
        sdk: Sdk::Node,
        modes: BINARY,
        events: &["empty-subject"],
        field: "$refused",
        behaviour: "refuses an empty `ce-subject`",
        did: |_, seen| says(seen, "/subject"),
    },
    Deviation {
        sdk: Sdk::Node,
        modes: STRUCTURED,
        events: &["capital-extension"],
        field: "$refused",
        behaviour: "refuses an attribute with capitals in its name; as a header it has none",
        did: |_, seen| says(seen, "invalid attribute name"),
    },
    Deviation {
        sdk: Sdk::Node,
        modes: STRUCTURED,
        events: &["zero", "false", "empty-text"],
        field: "data",
        behaviour: "drops data that is `0`, `false` or empty",
        did: |_, seen| seen.is_null(),
    },
    Deviation {
        sdk: Sdk::Node,
        modes: BINARY,
        events: &["number", "zero", "false"],
        field: "data",
        behaviour: "reads JSON that is neither object, array nor string as a string",
        did: |sent, seen| {
            seen.as_str().is_some_and(|seen| serde_json::from_str(seen).ok().as_ref() == Some(sent))
        },
    },
    Deviation {
        sdk: Sdk::Node,
        modes: BINARY,
        events: &["json-by-suffix"],
        field: "data",
        behaviour: "leaves data as text where the content type is JSON, but not `application/json`",
        did: |_, seen| seen == "[1, 2 ]",
    },
    Deviation {
        sdk: Sdk::Node,
        modes: STRUCTURED,
        events: &["space-around"],
        field: "$refused",
        behaviour: "refuses a body that begins with white space",
        did: |_, seen| says(seen, "SyntaxError"),
    },
    Deviation {
        sdk: Sdk::Node,
        modes: BINARY,
        events: &["bytes"],
        field: "$signature",
        behaviour: "`standardwebhooks` verifies only bodies that are UTF-8",
        did: |_, seen| says(seen, "No matching signature found"),
    },
];

/// All known deviations.
pub(crate) fn all() -> impl Iterator<Item = &'static Deviation> {
    PYTHON.iter().chain(NODE)
}

/// Returns true if the value is a string that contains this text.
fn says(seen: &Value, text: &str) -> bool {
    seen.as_str().is_some_and(|seen| seen.contains(text))
}

/// Returns true if this is the same text, as encoded in a header.
fn is_encoded(sent: &Value, seen: &Value) -> bool {
    let Some((sent, seen)) = sent.as_str().zip(seen.as_str()) else { return false };
    percent_decode_str(seen).decode_utf8().is_ok_and(|decoded| decoded == sent)
}

/// Returns true if this is the same time, truncated to this unit.
fn is_cut_to(sent: &Value, seen: &Value, unit_ns: i128) -> bool {
    let cut = instant_ns(sent).map(|sent_ns| sent_ns - sent_ns % unit_ns);
    cut.is_some() && cut == instant_ns(seen)
}

/// Parses a time to an instant, in nanoseconds.
pub(crate) fn instant_ns(value: &Value) -> Option<i128> {
    Some(value.as_str()?.parse::<jiff::Timestamp>().ok()?.as_nanosecond())
}
