//! Formats a received request for people and for tools.
//!
//! Shows everything that was received, including credentials, because the subscriber is a test
//! receiver on the user's own machine. The text for people limits only the length of the body.

use axum::http::StatusCode;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use delivery::time::moment;
use local::subscriber::Received;
use serde_json::{Map, Value, json};

use super::signatures::Checked;
use crate::terminal::styled::{Part, Rendered, Screen, Style};
use crate::terminal::text::indented;
use crate::terminal::text::{counted, first_chars, grouped, status_name, time_of_day};

/// The maximum number of characters of a body that are shown.
const BODY_MAX_CHARS: usize = 16 * 1_024;

/// Formats method, path, response, signature, headers and body. With `for_reading`, indents JSON;
/// otherwise, leaves it unchanged for other programs.
pub(super) fn text(
    screen: Screen,
    for_reading: bool,
    received: &Received,
    status: StatusCode,
    signature: Option<Checked>,
) -> Rendered {
    let style = if status.is_success() { Style::Good } else { Style::Bad };
    let name = status_name(status.as_u16()).unwrap_or_default();
    let bytes = received.body.len();
    let mut parts = vec![
        Part::new(Style::Dim, time_of_day(received.at_ms)),
        Part::new(Style::Name, format!("{} {}", received.method, received.path)),
        Part::new(style, format!("-> {} {name}", status.as_u16()).trim_end()),
        Part::new(Style::Dim, counted(bytes as u64, "byte")),
    ];
    parts.extend(signature.map(|checked| match checked {
        Ok(()) => Part::new(Style::Good, "signature: valid"),
        Err(why) => Part::new(Style::Bad, format!("signature: invalid: {why}")),
    }));
    let headers = received.headers.iter();
    let headers = headers
        .map(|(name, value)| format!("  {name}: {}", String::from_utf8_lossy(value.as_bytes())));
    let rest = headers.chain([body(&received.body, for_reading), String::new()]);
    rest.fold(screen.line(&parts), |lines, line| lines.and_then(&line))
}

fn body(bytes: &[u8], for_reading: bool) -> String {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return "(not UTF-8 text)".to_owned();
    };
    let shown = for_reading.then(|| indented(text)).flatten();
    let shown = shown.as_deref().unwrap_or(text);
    let beginning = first_chars(shown, BODY_MAX_CHARS);
    match beginning.len() == shown.len() {
        true => beginning,
        false => {
            format!("{beginning}\n(truncated, {} bytes in total)", grouped(bytes.len() as u64))
        }
    }
}

/// Formats the complete request as one JSON object.
pub(super) fn json(received: &Received, status: StatusCode, signature: Option<Checked>) -> Value {
    let mut headers = Map::new();
    for name in received.headers.keys() {
        let values = received.headers.get_all(name).iter();
        let values: Vec<String> =
            values.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect();
        // Join repeated headers as HTTP does (RFC 9110, 5.3).
        headers.insert(name.to_string(), values.join(", ").into());
    }
    let mut request = json!({
        "receivedAt": moment::rfc3339(received.at_ms),
        "method": received.method.as_str(),
        "path": received.path,
        "headers": headers,
        "status": status.as_u16(),
    });
    match std::str::from_utf8(&received.body) {
        Ok(text) => request["body"] = text.into(),
        Err(_) => request["bodyBase64"] = STANDARD.encode(&received.body).into(),
    }
    if let Some(checked) = signature {
        let is_valid = checked.is_ok();
        request["signature"] = if is_valid { "valid" } else { "invalid" }.into();
        if let Err(why) = checked {
            request["signatureProblem"] = why.to_string().into();
        }
    }
    request
}

#[cfg(test)]
mod tests {
    use axum::body::Bytes;
    use axum::http::{HeaderMap, HeaderValue, Method};
    use delivery::request::verification::InvalidSignature;

    use super::*;
    use crate::terminal::styled::Screen;

    fn received(body: impl Into<Bytes>) -> Received {
        let mut headers = HeaderMap::new();
        headers.append("x-a", HeaderValue::from_static("1"));
        headers.append("x-a", HeaderValue::from_bytes(b"\xff2").expect("a value"));
        let (method, path) = (Method::POST, "/in".to_owned());
        Received { at_ms: 1_795_158_180_123, method, path, headers, body: body.into() }
    }

    fn shown(for_reading: bool, body: impl Into<Bytes>, signature: Option<Checked>) -> Vec<String> {
        let status = StatusCode::SERVICE_UNAVAILABLE;
        let shown = text(Screen::PLAIN, for_reading, &received(body), status, signature);
        shown.as_str().split('\n').map(str::to_owned).collect()
    }

    #[test]
    fn a_request_is_shown_with_its_headers_and_json_is_indented_for_people() {
        let lines = shown(true, "{\"a\":1.0}", Some(Ok(())));
        let expected = [
            "07:03:00.123Z  POST /in  -> 503 Service Unavailable  9 bytes  signature: valid",
            "  x-a: 1",
            "  x-a: \u{fffd}2",
            "{",
            "  \"a\": 1.0",
            "}",
            "",
        ];
        assert_eq!(lines, expected);
        let invalid = Some(Err(InvalidSignature::Missing("webhook-id")));
        let lines = shown(false, "{\"a\":1.0}\x1b", invalid);
        assert!(
            lines[0].ends_with("signature: invalid: the header webhook-id is missing"),
            "{lines:?}"
        );
        assert_eq!(lines[3], "{\"a\":1.0}\u{fffd}");
    }

    #[test]
    fn long_bodies_are_cut_and_bytes_are_not_shown() {
        let lines = shown(true, "x".repeat(20_000), None);
        assert_eq!(lines[3].len(), BODY_MAX_CHARS);
        assert_eq!(lines[4], "(truncated, 20,000 bytes in total)");
        assert_eq!(shown(true, &b"\xff\x00"[..], None)[3], "(not UTF-8 text)");
    }

    #[test]
    fn tools_get_the_whole_request() {
        let invalid = Some(Err(InvalidSignature::NoMatch));
        let body = "x".repeat(20_000);
        let request = json(&received(body.clone()), StatusCode::OK, invalid);
        assert_eq!(request["body"], body.as_str());
        assert_eq!(request["headers"]["x-a"], "1, \u{fffd}2");
        assert_eq!((&request["status"], &request["signature"]), (&200.into(), &"invalid".into()));
        assert!(request["signatureProblem"].as_str().expect("a text").contains("another secret"));
        let request = json(&received(&b"\xff\x00"[..]), StatusCode::OK, None);
        assert_eq!(request["bodyBase64"], "/wA=");
        assert!(request.get("body").is_none() && request.get("signature").is_none());
    }
}
