//! [`Trace`]: the trace of an event (W3C Trace Context), from the event or from the queue.
//!
//! A CloudEvent may have `traceparent` and `tracestate` (the distributed tracing extension).
//! Requests send them as headers. An event without `traceparent` belongs to the trace of its
//! record, which SQS reports in `AWSTraceHeader`.

use std::borrow::Cow;

use crate::delivery::Delivery;
use crate::event::{Event, Members};

/// Maximum length of `tracestate`; a longer value is dropped. W3C Trace Context recommends that
/// senders propagate at least this length.
/// <https://www.w3.org/TR/trace-context/#tracestate-limits>
const STATE_MAX_BYTES: usize = 512;

/// The trace of one event, as the values of two HTTP headers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// The value of the header `traceparent`.
    pub parent: String,
    /// The value of the header `tracestate`.
    pub state: Option<String>,
}

impl Trace {
    /// Returns the trace id, which is the second part of `traceparent`.
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        self.parent.split('-').nth(1)
    }
}

/// Returns the trace id of a delivery for logs. `members` are the members of the delivery's event.
#[must_use]
pub fn id_of<'a>(delivery: &'a Delivery, members: &Members<'a>) -> Option<Cow<'a, str>> {
    let parent =
        parent_in(members).or_else(|| delivery.traceparent.as_deref().map(Cow::Borrowed))?;
    match parent {
        Cow::Borrowed(parent) => parent.split('-').nth(1).map(Cow::Borrowed),
        Cow::Owned(parent) => parent.split('-').nth(1).map(|id| Cow::Owned(id.to_owned())),
    }
}

/// Returns the trace in the event of a delivery. If the event has none, returns the trace of its
/// record.
#[must_use]
pub fn of_delivery(delivery: &Delivery) -> Option<Trace> {
    let of_record = || Some(Trace { parent: delivery.traceparent.clone()?, state: None });
    of_event(&delivery.event).or_else(of_record)
}

/// Returns the trace in the event itself; `None` if the event has no valid `traceparent`.
#[must_use]
pub fn of_event(event: &Event) -> Option<Trace> {
    // Most events have no trace. Searching for the name is faster than parsing. Only an escape
    // sequence could hide the name.
    if !event.text().contains("traceparent") && !event.text().contains('\\') {
        return None;
    }
    let members = event.members();
    let parent = parent_in(&members)?.into_owned();
    let sendable =
        |text: &str| !text.is_empty() && text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    let state =
        members.text("tracestate").filter(|text| text.len() <= STATE_MAX_BYTES && sendable(text));
    Some(Trace { parent, state: state.map(|text| text.trim().to_owned()) })
}

fn parent_in<'a>(members: &Members<'a>) -> Option<Cow<'a, str>> {
    members.text("traceparent").filter(|text| is_parent(text))
}

/// Converts an X-Ray trace header to a `traceparent`. Returns `None` if the header has no valid
/// trace and parent. Example of a header:
/// `Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1`.
/// <https://docs.aws.amazon.com/xray/latest/devguide/xray-concepts.html#xray-concepts-tracingheader>
#[must_use]
pub fn parent_of_xray(header: &str) -> Option<String> {
    let field = |name: &str| {
        header.split(';').find_map(|part| part.trim().strip_prefix(name)?.strip_prefix('='))
    };
    // The 8 and 24 digits of X-Ray together are the 32 digits of a W3C trace-id.
    let (epoch, unique) = field("Root")?.strip_prefix("1-")?.split_once('-')?;
    // The flag `sampled` is the lowest bit of the W3C flags.
    let sampled = u8::from(field("Sampled") == Some("1"));
    let parent = format!("00-{epoch}{unique}-{}-{sampled:02x}", field("Parent")?);
    is_parent(&parent).then_some(parent)
}

/// Returns true if the text is a valid `traceparent`: version, trace, parent and flags in
/// lower-case hexadecimal.
fn is_parent(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let [version, trace, parent, flags] = parts[..] else { return false };
    let hexadecimal = |part: &str, length: usize| {
        part.len() == length && part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    let identifies = |part: &str, length: usize| {
        hexadecimal(part, length) && part.bytes().any(|byte| byte != b'0')
    };
    // W3C forbids version ff, and ids that consist only of zeros.
    hexadecimal(version, 2)
        && version != "ff"
        && identifies(trace, 32)
        && identifies(parent, 16)
        && hexadecimal(flags, 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delivery::Origin;
    use crate::event::Input;

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b9c7c989f97918e1-01";

    fn trace_of(members: &str) -> Option<Trace> {
        let event = format!(r#"{{"specversion":"1.0","id":"1","source":"s","type":"t"{members}}}"#);
        of_event(&Event::recall(&event.into(), Input::Auto))
    }

    #[test]
    fn an_event_may_carry_its_own_trace() {
        let with_state =
            format!(r#","traceparent":"{PARENT}","tracestate":"rojo=00f067aa0ba902b7""#);
        let trace =
            Trace { parent: PARENT.to_owned(), state: Some("rojo=00f067aa0ba902b7".to_owned()) };
        assert_eq!(trace_of(&with_state), Some(trace));
        for nothing in [
            "",
            r#","traceparent":"00-00000000000000000000000000000000-b9c7c989f97918e1-01""#,
            r#","traceparent":"ff-0af7651916cd43dd8448eb211c80319c-b9c7c989f97918e1-01""#,
            r#","traceparent":"x\r\ny: z""#,
            r#","tracestate":"rojo=1""#,
        ] {
            assert_eq!(trace_of(nothing), None, "{nothing}");
        }
        assert_eq!(
            trace_of(&format!(r#","traceparent":"{PARENT}","tracestate":"a\r\nb""#)).unwrap().state,
            None
        );
    }

    #[test]
    fn a_delivery_has_the_trace_of_its_event_or_else_of_its_record() {
        let of_record = "00-5759e988bd862e3fe1be46a994272793-53995c3f42cd8ad8-01";
        for (members, traceparent, id) in [
            (
                format!(r#","traceparent":"{PARENT}""#),
                Some(of_record),
                Some("0af7651916cd43dd8448eb211c80319c"),
            ),
            (String::new(), Some(of_record), Some("5759e988bd862e3fe1be46a994272793")),
            (String::new(), None, None),
        ] {
            let event =
                format!(r#"{{"specversion":"1.0","id":"1","source":"s","type":"t"{members}}}"#);
            let origin = Origin { message: "m".to_owned(), index: 0 };
            let event = Event::recall(&event.into(), Input::Auto);
            let new = Delivery::new(event, "a/b/c".parse().unwrap(), origin, 1);
            let delivery = Delivery { traceparent: traceparent.map(ToOwned::to_owned), ..new };
            assert_eq!(id_of(&delivery, &delivery.event.members()).as_deref(), id);
            assert_eq!(of_delivery(&delivery).as_ref().and_then(Trace::id), id);
        }
    }

    #[test]
    fn the_trace_of_the_publisher_is_read_from_the_queue() {
        let header = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1";
        let parent = "00-5759e988bd862e3fe1be46a994272793-53995c3f42cd8ad8-01";
        assert_eq!(parent_of_xray(header).as_deref(), Some(parent));
        for nothing in
            ["", "Root=1-5759e988-bd862e3fe1be46a994272793", "Root=x;Parent=y", "Self=1;Sampled=0"]
        {
            assert_eq!(parent_of_xray(nothing), None, "{nothing}");
        }
    }
}
