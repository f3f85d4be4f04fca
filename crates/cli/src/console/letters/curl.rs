//! Formats the event of a dead letter as a curl command that posts it to the destination. Pure.
//!
//! The command contains no credentials, because people paste it into terminals and tickets. It uses
//! only data in the dead letter. The original request also depended on the subscription, so it may
//! have been different.

use delivery::deadletter::stored::StoredDeadLetter;
use delivery::event::Members;
use delivery::shell::quoted;
use delivery::subscription::credentials::is_credential;
use url::Url;

use crate::operations::curl::{CurlHeader, CurlRequest};
use crate::terminal::text;

/// The names of headers that curl sets itself.
const MADE_BY_CURL: [&str; 4] = ["content-length", "host", "transfer-encoding", "connection"];

/// A curl command, and the headers that it omits.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::console) struct CurlCommand {
    pub(in crate::console) text: String,
    /// The names of the omitted headers.
    pub(in crate::console) left_out: Vec<String>,
}

/// Formats the command for a dead letter; `None` if the destination is not an HTTP address.
pub(in crate::console) fn command(letter: &StoredDeadLetter) -> Option<CurlCommand> {
    let url = address(letter.destination.as_deref()?)?;
    let is_own = |name: &str| MADE_BY_CURL.iter().any(|own| own.eq_ignore_ascii_case(name));
    let (sent, left_out): (Vec<_>, Vec<_>) = letter
        .headers
        .iter()
        .filter(|(name, _)| !is_own(name))
        .partition(|(name, value)| may_be_shown(name, value));
    let has_type = sent.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    let own_type =
        (!has_type).then(|| CurlHeader::new("content-type", content_type(&letter.event)));
    let headers = sent.iter().map(|(name, value)| CurlHeader::new(name, value.trim()));
    let headers = own_type.into_iter().chain(headers).collect();
    let (url, body) = (quoted(&url), letter.event.as_bytes());
    let text = CurlRequest { method: "POST", url, options: String::new(), headers, body }.command();
    let left_out = left_out.into_iter().map(|(name, _)| name.clone()).collect();
    Some(CurlCommand { text, left_out })
}

/// Returns the address without user, password and query, which may be credentials.
fn address(destination: &str) -> Option<String> {
    let mut url: Url = destination.parse().ok()?;
    if !matches!(url.scheme(), "http" | "https") {
        return None;
    }
    url.set_username("").ok()?;
    url.set_password(None).ok()?;
    url.set_query(None);
    url.set_fragment(None);
    Some(url.into())
}

/// Returns true if a header may be shown. Its name must be a token (RFC 9110, 5.6.2), and must not
/// be the name of a header for credentials. Its value must not contain invisible characters.
fn may_be_shown(name: &str, value: &str) -> bool {
    let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    !name.is_empty()
        && name.chars().all(is_token)
        && !is_credential(name)
        && !value.chars().any(text::is_invisible)
}

/// Guesses the content type of an event whose dead letter has no content-type header.
fn content_type(event: &str) -> &'static str {
    if Members::parse(event).is_ok_and(|members| members.get("specversion").is_some()) {
        "application/cloudevents+json"
    } else if serde_json::from_str::<serde::de::IgnoredAny>(event).is_ok() {
        "application/json"
    } else {
        "application/octet-stream"
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use adapters::http::AGENT;

    use super::*;

    fn letter(destination: &str, event: &str, headers: &[(&str, &str)]) -> StoredDeadLetter {
        let key = "a/b/c/2026/11/20/7/00000000-0000-0000-0000-000000000001.json";
        let blob = br#"{"event":{},"deadletterProperties":{"deadletterreasoncode":"A"}}"#;
        let letter = delivery::deadletter::stored::read(key, "", blob).unwrap();
        let headers =
            headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        StoredDeadLetter {
            destination: Some(destination.to_owned()),
            event: event.to_owned(),
            headers,
            ..letter
        }
    }

    /// Runs the command with a fake curl. Returns the arguments, and the standard input if an
    /// argument requests it.
    fn run(command: &str) -> Vec<Vec<u8>> {
        let script = format!(
            "curl() {{ printf '%s\\0' \"$@\"; for last; do :; done; if [ \"$last\" = @- ]; then cat; fi; }}\n{command}"
        );
        let output = Command::new("sh").arg("-c").arg(&script).output().expect("a shell");
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        output.stdout.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect()
    }

    #[test]
    fn headers_are_those_that_were_sent_and_credentials_are_never_in_it() {
        let headers = [
            ("Content-Type", "application/x; charset=utf-8"),
            ("X-It's", "a 'quoted' $(value)"),
            ("X-Empty", ""),
            ("Host", "a.example.com"),
            ("Authorization", "Bearer s3cret"),
            ("X-Api-Key", "s3cret"),
            ("Evil\n", "x"),
            ("X-Evil", "a\r\nb"),
        ];
        let address = "https://user:s3cret@a.example.com/[1-3]/it's?code=s3cret#s3cret";
        let command = command(&letter(address, "{}", &headers)).unwrap();
        assert!(!command.text.contains("s3cret"), "{}", command.text);
        assert_eq!(command.left_out, ["Authorization", "X-Api-Key", "Evil\n", "X-Evil"]);
        let got: Vec<String> = run(&command.text)
            .into_iter()
            .map(|argument| String::from_utf8(argument).unwrap())
            .collect();
        let expected = [
            "--disable",
            "--globoff",
            "--noproxy",
            "*",
            "--request",
            "POST",
            "https://a.example.com/[1-3]/it's",
            "--user-agent",
            AGENT,
            "--header",
            "accept-encoding: identity",
            "--header",
            "content-type: application/x; charset=utf-8",
            "--header",
            "x-it's: a 'quoted' $(value)",
            "--header",
            "x-empty;",
            "--data-raw",
            "{}",
            "",
        ];
        assert_eq!(got, expected);
    }

    #[test]
    fn an_event_without_a_content_type_gets_that_of_its_format_and_no_address_no_command() {
        for (event, kind) in [
            (r#"{"specversion":"1.0"}"#, "application/cloudevents+json"),
            ("[1]", "application/json"),
            ("hello", "application/octet-stream"),
        ] {
            let command = command(&letter("http://127.0.0.1:9180/a", event, &[])).unwrap();
            assert!(command.text.contains(&format!("'content-type: {kind}'")), "{}", command.text);
        }
        for destination in ["", "arn:aws:sqs:eu-west-1:1:q", "ftp://a/b"] {
            assert_eq!(command(&letter(destination, "{}", &[])), None, "{destination}");
        }
    }
}
