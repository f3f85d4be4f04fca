//! The event of a dead letter as a command for a shell: by POST to its destination. Pure.
//!
//! Separate because the text has to be correct for a shell, whatever is in the event, and must not
//! hold credentials: a person copies it into a terminal, and from there into a ticket. It is what a
//! dead letter knows, not the request as it was sent: that depends on the subscription.

use delivery::deadletter::stored::StoredDeadLetter;
use delivery::event::Members;
use delivery::subscription::credentials::is_credential;
use url::Url;

use crate::text;

/// Headers that curl makes itself.
const MADE_BY_CURL: [&str; 4] = ["content-length", "host", "transfer-encoding", "connection"];
/// A longer event does not fit into one argument of a program, so it goes through a pipe:
/// `MAX_ARG_STRLEN` of Linux, 128 KiB (execve(2)), with room for quotes.
const ARGUMENT_MAX_BYTES: usize = 100 * 1_024;

/// A command, and what is missing in it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CurlCommand {
    pub(super) text: String,
    /// The names of headers that are left out.
    pub(super) left_out: Vec<String>,
}

/// The command for a dead letter; `None` without an HTTP address.
pub(super) fn command(letter: &StoredDeadLetter) -> Option<CurlCommand> {
    let url = address(letter.destination.as_deref()?)?;
    let is_own = |name: &str| MADE_BY_CURL.iter().any(|of| of.eq_ignore_ascii_case(name));
    let (sent, left_out): (Vec<_>, Vec<_>) = letter
        .headers
        .iter()
        .filter(|(name, _)| !is_own(name))
        .partition(|(name, value)| may_be_shown(name, value));
    let has_type = sent.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    let own_type = (!has_type).then(|| format!("content-type: {}", content_type(&letter.event)));
    let lines = sent.iter().map(|(name, value)| match value.trim() {
        // With a colon and nothing behind it curl removes the header.
        "" => format!("{name};"),
        value => format!("{name}: {value}"),
    });
    let headers: String = own_type
        .into_iter()
        .chain(lines)
        .map(|line| format!(" \\\n  --header {}", quoted(&line)))
        .collect();
    // Brackets would be ranges of addresses.
    let request = format!("curl --globoff --request POST {}{headers}", quoted(&url));
    let event = &letter.event;
    let text = if event.chars().any(is_written_as_code) {
        format!("printf '%b' {} |\n{request} \\\n  --data-binary @-", quoted(&codes(event)))
    } else if event.len() > ARGUMENT_MAX_BYTES {
        format!("printf '%s' {} |\n{request} \\\n  --data-binary @-", quoted(event))
    } else {
        format!("{request} \\\n  --data-raw {}", quoted(event))
    };
    let left_out = left_out.into_iter().map(|(name, _)| name.clone()).collect();
    Some(CurlCommand { text, left_out })
}

/// The address without what may be a credential: user, password and query.
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

/// Whether a header is a plain one: a token (RFC 9110, 5.6.2) without a credential, with a value in
/// which everything can be seen.
fn may_be_shown(name: &str, value: &str) -> bool {
    let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    !name.is_empty()
        && name.chars().all(is_token)
        && !is_credential(name)
        && !value.chars().any(text::is_invisible)
}

/// The content type of an event without a header that says it.
fn content_type(event: &str) -> &'static str {
    if Members::parse(event).is_ok_and(|members| members.get("specversion").is_some()) {
        "application/cloudevents+json"
    } else if serde_json::from_str::<serde::de::IgnoredAny>(event).is_ok() {
        "application/json"
    } else {
        "application/octet-stream"
    }
}

/// A text as one word of a shell (POSIX, Shell Command Language, 2.2.2).
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

fn is_written_as_code(c: char) -> bool {
    text::is_invisible(c) && !matches!(c, '\n' | '\t')
}

/// A text for `%b` of printf (POSIX): what cannot be seen as octal numbers, so that it can be copied.
fn codes(event: &str) -> String {
    let mut codes = String::with_capacity(event.len());
    for c in event.chars() {
        match c {
            '\\' => codes.push_str(r"\\"),
            c if is_written_as_code(c) => {
                let mut bytes = [0; 4];
                let bytes = c.encode_utf8(&mut bytes).bytes();
                bytes.for_each(|byte| codes.push_str(&format!("\\0{byte:03o}")));
            }
            c => codes.push(c),
        }
    }
    codes
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn letter(destination: &str, event: &str, headers: &[(&str, &str)]) -> StoredDeadLetter {
        let key = "a/b/c/2026/11/20/7/00000000-0000-0000-0000-000000000001.json";
        let blob = br#"{"event":{},"deadletterProperties":{"deadletterreasoncode":"A"}}"#;
        let letter = delivery::deadletter::stored::read(key, "", blob).unwrap().remove(0);
        let headers =
            headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        StoredDeadLetter {
            destination: Some(destination.to_owned()),
            event: event.to_owned(),
            headers,
            ..letter
        }
    }

    /// What curl would get: its arguments, then its standard input where it is told to read it.
    fn run(command: &str) -> Vec<Vec<u8>> {
        let script = format!(
            "curl() {{ printf '%s\\0' \"$@\"; for last; do :; done; if [ \"$last\" = @- ]; then cat; fi; }}\n{command}"
        );
        let output = Command::new("sh").arg("-c").arg(&script).output().expect("a shell");
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        output.stdout.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect()
    }

    /// The body that would be sent: an argument, or standard input.
    fn body(arguments: &[Vec<u8>]) -> Vec<u8> {
        let at = arguments.iter().position(|argument| argument.starts_with(b"--data")).unwrap();
        let is_input = arguments[at] == b"--data-binary";
        // A NUL of the event separates parts of standard input too.
        if is_input { arguments[at + 2..].join(&0) } else { arguments[at + 1].clone() }
    }

    proptest! {
        #[test]
        fn a_shell_gives_curl_the_event_byte_for_byte(
            parts in vec(prop_oneof![
                any::<String>(),
                prop::sample::select(&["'", "\\", "\r\n", "\n", "$(id)", "`id`", "\\0101", "@x", "%s", "\0", "\u{202e}", "!"][..])
                    .prop_map(str::to_owned),
            ], 0..6),
        ) {
            let event = parts.concat();
            let command = command(&letter("https://a.example.com/x", &event, &[])).unwrap();
            prop_assert!(!command.text.chars().any(is_written_as_code), "{:?}", command.text);
            let got = body(&run(&command.text));
            prop_assert_eq!(String::from_utf8_lossy(&got), event);
        }
    }

    #[test]
    fn a_long_event_is_no_argument() {
        let event = format!("\"{}'\"", "x".repeat(ARGUMENT_MAX_BYTES));
        let command = command(&letter("https://a.example.com/", &event, &[])).unwrap();
        assert_eq!(body(&run(&command.text)), event.as_bytes());
        assert!(command.text.starts_with("printf '%s'"));
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
            "--globoff",
            "--request",
            "POST",
            "https://a.example.com/[1-3]/it's",
            "--header",
            "Content-Type: application/x; charset=utf-8",
            "--header",
            "X-It's: a 'quoted' $(value)",
            "--header",
            "X-Empty;",
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
