//! Reads spellings of older versions of Knative that existing files still have. Each causes a
//! warning with the current spelling.
//!
//! Separate so that the readers of current fields do not contain old spellings.

use delivery::document::findings::{Message, quoted};
use delivery::document::reader::{Cursor, Fields};
use delivery::subscription::filter::Filter;
use delivery::subscription::kinds::conditions::joined;
use delivery::time::duration;

/// Units in durations of Go. `ms` precedes `m`, because `m` is a prefix of `ms`.
const GO_UNITS: [(&str, u64); 4] =
    [("ms", 1), ("h", duration::HOUR_MS), ("m", duration::MINUTE_MS), ("s", duration::SECOND_MS)];

/// Converts a duration of Go, such as `3s`, to ISO 8601; returns `None` for any other text.
fn iso_of_go(text: &str) -> Option<String> {
    let (mut rest, mut sum_ms) = (text, 0_u64);
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let (number, tail) = rest.split_at(digits);
        let (unit, unit_ms) = GO_UNITS.iter().find(|(unit, _)| tail.starts_with(unit))?;
        sum_ms = sum_ms.checked_add(number.parse::<u64>().ok()?.checked_mul(*unit_ms)?)?;
        rest = tail.strip_prefix(unit)?;
    }
    (!text.is_empty()).then(|| duration::format_ms(sum_ms))
}

/// Reads a duration in milliseconds. Accepts ISO 8601, and Go's form such as `3s` with a warning.
pub(super) fn duration_ms(
    cursor: &Cursor<'_>,
    range_ms: std::ops::RangeInclusive<u64>,
) -> Option<u64> {
    let Some(iso) = cursor.peek_text().and_then(iso_of_go) else {
        return cursor.duration_ms(range_ms);
    };
    let ms = duration::parse_ms(&iso).ok().filter(|ms| range_ms.contains(ms));
    if ms.is_none() {
        let [least, most] = [range_ms.start(), range_ms.end()].map(|ms| duration::format_ms(*ms));
        return cursor.refuse(format!("must be {least} to {most}, but is {iso}"));
    }
    let text = quoted(cursor.peek_text().unwrap_or_default());
    cursor.warn(Message::new(format!("{text} is an old format and is read as {iso}")).help(iso));
    ms
}

/// Reads a destination that names its object directly, without `ref`.
pub(super) fn flat_reference<'a>(fields: &Fields<'a>) -> Option<Cursor<'a>> {
    let at = fields.parent();
    let names_object = ["apiVersion", "kind", "name"].iter().all(|field| at.peek(field).is_some());
    if !names_object {
        return None;
    }
    fields.accept(&["apiVersion", "kind", "name", "namespace"]);
    at.warn(Message::new("this old format is read as ref").help("ref: {apiVersion, kind, name}"));
    Some(at.clone())
}

/// Reads `deadLetterSinkURI`, which controllers wrote beside a subscriber.
pub(super) fn sink_uri<'a>(fields: &Fields<'a>) -> Option<Cursor<'a>> {
    let at = fields.given("deadLetterSinkURI").or_else(|| fields.given("deadLetterSinkUri"))?;
    at.warn(
        Message::new("this old field is read as deadLetterSink").help("deadLetterSink: {uri: …}"),
    );
    Some(at)
}

/// Reads `filter.sourceAndType`. Each value has to equal the value of the event. An empty value
/// matches every event.
pub(super) fn source_and_type(at: &Cursor<'_>) -> Option<Filter> {
    at.warn(
        Message::new("this old field is read as attributes").help("attributes: {source, type}"),
    );
    let exact =
        |name: &str, value: &str| Filter::Exact { name: name.to_owned(), value: value.to_owned() };
    at.mapping(|fields| {
        let mut filters = Vec::new();
        for name in ["source", "type"] {
            let value = fields.given(name).map_or(Some(""), |value| value.text())?;
            filters.extend((!value.is_empty()).then(|| exact(name, value)));
        }
        Some(joined(filters))
    })?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_of_go_are_read_to_the_millisecond() {
        for (text, iso) in [
            ("3s", Some("PT3S")),
            ("1m30s", Some("PT1M30S")),
            ("2h", Some("PT2H")),
            ("250ms", Some("PT0.25S")),
            ("1h1ms", Some("PT1H0.001S")),
            ("0s", Some("PT0S")),
            ("", None),
            ("3", None),
            ("s", None),
            ("3d", None),
            ("-3s", None),
            ("1.5s", None),
            ("PT3S", None),
            ("99999999999999999999h", None),
        ] {
            assert_eq!(iso_of_go(text).as_deref(), iso, "{text}");
        }
    }
}
