//! Formats a request and a response as HTTP messages, with secrets redacted. Pure.

use crate::operations::shown_exchange::{ShownBody, ShownExchange};
use crate::terminal::text;

/// Formats the request: method, URL, headers and body.
pub(crate) fn request(exchange: &ShownExchange) -> String {
    let line = format!("{} {}\n", exchange.method, text::line(&exchange.url));
    format!("{line}{}{}", headers(&exchange.headers), body(&exchange.body))
}

pub(crate) fn headers(headers: &[(String, String)]) -> String {
    let lines = headers.iter().map(|(name, value)| text::line(&format!("{name}: {value}")));
    lines.map(|line| format!("{line}\n")).collect()
}

/// Formats the body after a blank line, and notes whether it is cut.
pub(crate) fn body(body: &ShownBody) -> String {
    let cut = if body.is_cut {
        format!("(truncated, {} in total)\n", text::counted(body.bytes as u64, "byte"))
    } else {
        String::new()
    };
    if body.text.is_empty() {
        cut
    } else {
        format!("\n{}\n{cut}", body.text.trim_end_matches('\n'))
    }
}
