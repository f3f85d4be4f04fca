//! Selects the log lines that contain a wanted id or text.
//!
//! Separate because local logs are filtered here, but CloudWatch Logs filters by a pattern with the
//! same meaning. Log lines are compact JSON, so an id matches exactly: it is the whole value of one
//! of [`ID_FIELDS`].
//!
//! Promises: a part of an id matches nothing, except in a text search. The pattern uses only
//! regular expression syntax that the emulated Logs Insights supports: alternatives and escapes.

use uuid::Uuid;

/// The fields with the id of an event, a trace, a delivery or a replayed dead letter. A
/// `webhook-id` equals the id of a delivery.
const ID_FIELDS: [&str; 5] = ["event_id", "delivery_id", "trace_id", "letter", "delivery"];
/// The length to which the functions cut ids in log lines (`adapters::telemetry`).
const VALUE_MAX_BYTES: usize = 512;
/// The number of hexadecimal digits of a trace id (W3C Trace Context, 3.2.2.3).
const TRACE_ID_DIGITS: usize = 32;

/// The wanted texts. A log line matches if it contains at least one of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wanted {
    texts: Vec<String>,
    is_anywhere: bool,
}

impl Wanted {
    /// Selects lines with this id of an event, a delivery or a trace. A `traceparent` and an X-Ray
    /// trace id are accepted as trace ids.
    pub(crate) fn id(text: &str) -> Self {
        let cut = text.get(..text.floor_char_boundary(VALUE_MAX_BYTES)).unwrap_or(text);
        let mut texts = vec![cut.to_owned()];
        // The functions write UUIDs and trace ids in lower case, but people may paste them in upper
        // case.
        let uuid = text.parse::<Uuid>().ok().map(|id| id.to_string());
        texts.extend(uuid.into_iter().chain(trace_id(text)));
        texts.dedup();
        Self { texts, is_anywhere: false }
    }

    /// Selects lines that contain the duration of an attempt.
    pub(crate) fn attempts() -> Self {
        Self::anywhere("duration_ms")
    }

    /// Returns the wanted id if it is a UUID; `None` in a text search.
    pub(crate) fn as_id(&self) -> Option<Uuid> {
        self.texts.first().filter(|_| !self.is_anywhere)?.parse().ok()
    }

    /// Selects lines about one of these deliveries.
    pub(crate) fn deliveries(ids: impl IntoIterator<Item = Uuid>) -> Self {
        let texts = ids.into_iter().map(|id| id.to_string()).collect();
        Self { texts, is_anywhere: false }
    }

    /// Selects lines that contain this text anywhere.
    pub(crate) fn anywhere(text: &str) -> Self {
        Self { texts: vec![text.to_owned()], is_anywhere: true }
    }

    /// Returns true if this value is one of the wanted ids, or contains the wanted text.
    pub(crate) fn is(&self, value: &str) -> bool {
        match self.is_anywhere {
            true => self.texts.iter().any(|text| value.contains(text)),
            false => self.texts.iter().any(|text| text == value),
        }
    }

    /// Returns true if a log line contains a wanted text, or a wanted id in one of [`ID_FIELDS`].
    pub(crate) fn is_in(&self, line: &str) -> bool {
        self.texts.iter().any(|text| match self.is_anywhere {
            true => line.contains(&inside_json(text)),
            false => ID_FIELDS
                .iter()
                .any(|field| line.contains(&format!("\"{field}\":\"{}\"", inside_json(text)))),
        })
    }

    /// Formats the rule of [`Self::is_in`] as a regular expression of Logs Insights, between
    /// slashes.
    #[cfg(feature = "aws")]
    pub(crate) fn pattern(&self) -> String {
        let texts: Vec<String> =
            self.texts.iter().map(|text| escaped(&inside_json(text))).collect();
        let texts = texts.join("|");
        match self.is_anywhere {
            true => format!("/{texts}/"),
            false => format!("/\"({})\":\"({texts})\"/", ID_FIELDS.join("|")),
        }
    }
}

/// Escapes a text for the inside of a JSON string.
fn inside_json(text: &str) -> String {
    let json = serde_json::Value::from(text).to_string();
    json.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(&json).to_owned()
}

/// Escapes the special characters of regular expressions.
#[cfg(feature = "aws")]
fn escaped(text: &str) -> String {
    const SPECIAL: &str = r"\.+*?()|[]{}^$/";
    text.chars().fold(String::with_capacity(text.len()), |mut escaped, char| {
        if SPECIAL.contains(char) {
            escaped.push('\\');
        }
        escaped.push(char);
        escaped
    })
}

/// Extracts the trace id from a `traceparent` or an X-Ray trace id
/// (`1-5759e988-bd862e3fe1be46a994272793`).
fn trace_id(text: &str) -> Option<String> {
    let parts: Vec<&str> = text.split('-').collect();
    let id = match parts.as_slice() {
        [_, id, _, _] => (*id).to_owned(),
        ["1", seconds, random] => format!("{seconds}{random}"),
        _ => return None,
    };
    let is_hex = id.bytes().all(|byte| byte.is_ascii_hexdigit());
    (is_hex && id.len() == TRACE_ID_DIGITS).then(|| id.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"message":"delivery.delivered","event_id":"order-1","type":"order.created","delivery_id":"6f1c2a9e-0000-5000-8000-000000000001","trace_id":"4bf92f3577b34da6a3ce929d0e0e4736","status":200}"#;

    #[test]
    fn an_id_is_found_as_a_whole_value_and_a_text_anywhere() {
        for (text, is_found) in [
            ("order-1", true),
            ("order-", false),
            ("order.created", false),
            ("6f1c2a9e-0000-5000-8000-000000000001", true),
            ("6F1C2A9E-0000-5000-8000-000000000001", true),
            ("4bf92f3577b34da6a3ce929d0e0e4736", true),
            ("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", true),
            ("1-4bf92f35-77b34da6a3ce929d0e0e4736", true),
        ] {
            assert_eq!(Wanted::id(text).is_in(LINE), is_found, "{text}");
        }
        assert!(Wanted::anywhere("der.cre").is_in(LINE) && !Wanted::anywhere("paid").is_in(LINE));
        let quoted = r#"{"event_id":"a \"b\" \\ é"}"#;
        assert!(Wanted::id("a \"b\" \\ é").is_in(quoted));
    }

    #[cfg(feature = "aws")]
    #[test]
    fn a_pattern_has_no_character_with_a_meaning_of_its_own() {
        let fields = "\"(event_id|delivery_id|trace_id|letter|delivery)\"";
        assert_eq!(Wanted::id("a/b.c|d").pattern(), format!(r#"/{fields}:"(a\/b\.c\|d)"/"#));
        assert_eq!(Wanted::anywhere("a\"b").pattern(), r#"/a\\"b/"#);
        let both = Wanted::deliveries([Uuid::from_u128(1), Uuid::from_u128(2)]).pattern();
        assert!(both.contains("0001|00000000-"), "{both}");
    }
}
