//! Parses the extension attribute `deliverat`: the earliest time at which a CloudEvent is
//! delivered.
//!
//! This module is separate because every entry point needs it: the queue, HTTP, replies and the
//! command line. An event with an invalid `deliverat` is malformed, so no delivery ignores the
//! attribute. Only CloudEvents have extension attributes. In other events `deliverat` is data. The
//! module `delivery/start.rs` checks that the time is not too far in the future.

use crate::event::malformed::Malformed;
use crate::event::members::Members;
use crate::time::moment;

/// Name of the CloudEvents extension attribute.
pub const DELIVER_AT: &str = "deliverat";

/// Returns `deliverat` in milliseconds since 1970; `None` if the attribute is missing or null.
///
/// # Errors
/// [`Malformed`] if the value is not a date-time of RFC 3339.
pub(super) fn read(members: &Members<'_>) -> Result<Option<u64>, Malformed> {
    match members.get(DELIVER_AT) {
        None | Some("null") => Ok(None),
        Some(_) => {
            let text = members.text(DELIVER_AT);
            let at_ms = text.as_deref().and_then(moment::date_time);
            at_ms.map(Some).ok_or(Malformed::NoMoment)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Element, Input, decode_one};

    fn event(attribute: &str) -> Element {
        let text =
            format!(r#"{{"specversion":"1.0","id":"1","source":"/s","type":"t"{attribute}}}"#);
        decode_one(&text.into(), Input::Auto)
    }

    #[test]
    fn a_cloud_event_names_its_moment_by_a_date_time_or_is_malformed() {
        for (attribute, at_ms) in [
            ("", Ok(None)),
            (r#","deliverat":null"#, Ok(None)),
            (r#","deliverat":"2026-12-01T09:00:00Z""#, Ok(Some(1_796_115_600_000))),
            (r#","deliverat":"2026-12-01T10:00:00+01:00""#, Ok(Some(1_796_115_600_000))),
            (r#","deliverat":"1969-12-31T23:59:59Z""#, Ok(Some(0))),
            (r#","deliverat":"2026-12-01""#, Err(Malformed::NoMoment)),
            (r#","deliverat":"2026-12-01T09:00:00""#, Err(Malformed::NoMoment)),
            (r#","deliverat":"tomorrow""#, Err(Malformed::NoMoment)),
            (r#","deliverat":"""#, Err(Malformed::NoMoment)),
            (r#","deliverat":1796115600"#, Err(Malformed::NoMoment)),
            (r#","deliverat":true"#, Err(Malformed::NoMoment)),
        ] {
            let found = match event(attribute) {
                Element::Event(event) => Ok(event.deliver_at_ms()),
                Element::Malformed { why, .. } => Err(why),
            };
            assert_eq!(found, at_ms, "{attribute}");
        }
    }

    #[test]
    fn in_other_events_the_name_is_data() {
        for (text, input) in [
            (r#"{"deliverat":"tomorrow"}"#, Input::Auto),
            (
                r#"{"id":"1","subject":"s","eventType":"t","eventTime":"2026-11-20T07:03:00Z","deliverat":7}"#,
                Input::EventGrid,
            ),
            (r#"{"specversion":"1.0","deliverat":"tomorrow"}"#, Input::Custom),
        ] {
            let Element::Event(event) = decode_one(&text.into(), input) else { panic!("{text}") };
            let with_moment = event.text_with_deliver_at(7);
            assert_eq!((event.deliver_at_ms(), with_moment), (None, None), "{text}");
        }
    }

    #[test]
    fn an_event_gets_a_moment_and_everything_else_keeps_its_spelling() {
        let added = r#"{"specversion" : "1.0","id":"1","source":"/s","type":"t","data":1.50,"deliverat":"2026-12-01T09:00:00.0000000Z"}"#;
        let replaced = r#"{"specversion":"1.0", "deliverat" : "2026-12-01T09:00:00.0000000Z" ,"id":"1","source":"/s","type":"t"}"#;
        for (text, expected) in [
            (r#" {"specversion" : "1.0","id":"1","source":"/s","type":"t","data":1.50}"#, added),
            (
                r#"{"specversion":"1.0", "deliverat" : null ,"id":"1","source":"/s","type":"t"}"#,
                replaced,
            ),
        ] {
            let Element::Event(event) = decode_one(&text.into(), Input::Auto) else {
                panic!("{text}")
            };
            let made = event.text_with_deliver_at(1_796_115_600_000).expect("a CloudEvent");
            assert_eq!(made, expected);
            let Element::Event(again) = decode_one(&made.into(), Input::Auto) else {
                panic!("{expected}")
            };
            assert_eq!(again.deliver_at_ms(), Some(1_796_115_600_000));
        }
    }
}
