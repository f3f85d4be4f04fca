//! Formats a request as a curl command that sends the same bytes. Pure.
//!
//! Separate because the text must be correct for a shell and for curl, whatever an event contains.
//! `try` and the page of a dead letter print such commands. Each of them chooses the headers, and
//! the placeholders for credentials.

use adapters::http::AGENT;
use delivery::shell::quoted;

use crate::operations::shell::{codes, is_written_as_code, typed};

/// The maximum length of a body that is passed as an argument; a longer body is passed through a
/// pipe. Linux limits an argument to 128 KiB (`MAX_ARG_STRLEN`, execve(2)). The rest is a margin
/// for quotes.
const ARGUMENT_MAX_BYTES: usize = 100 * 1_024;
/// The body size from which curl sends the header `Expect: 100-continue`. lastmile never sends this
/// header.
const ASKED_FROM_BYTES: usize = 1_024;

pub(crate) struct CurlRequest<'a> {
    pub(crate) method: &'a str,
    /// The URL, already quoted for the shell.
    pub(crate) url: String,
    /// The options for the connection, each formatted by [`option`].
    pub(crate) options: String,
    pub(crate) headers: Vec<CurlHeader>,
    pub(crate) body: &'a [u8],
}

/// A header of the command: its name in lower case, and the whole header quoted for the shell.
pub(crate) struct CurlHeader {
    name: String,
    word: String,
}

impl CurlHeader {
    /// Creates a header whose value contains no credential.
    pub(crate) fn new(name: &str, value: &str) -> Self {
        let name = name.to_ascii_lowercase();
        let word = match value {
            // curl removes a header that ends in a colon; a semicolon sends it empty.
            "" => typed(&format!("{name};")),
            value => typed(&format!("{name}: {value}")),
        };
        Self { name, word }
    }

    /// Creates a header whose value ends with `word`, which is already quoted for the shell, such
    /// as a variable.
    pub(crate) fn with_word(name: &str, beginning: &str, word: &str) -> Self {
        let name = name.to_ascii_lowercase();
        let word = format!("{}{word}", quoted(&format!("{name}: {beginning}")));
        Self { name, word }
    }
}

impl CurlRequest<'_> {
    /// Formats the complete command. Options replace the default headers of curl with those that
    /// lastmile sends.
    pub(crate) fn command(&self) -> String {
        let has = |name: &str| self.headers.iter().any(|header| header.name == name);
        // Disable the user's curl configuration, and the proxy, because lastmile uses neither.
        // Disable globbing, because curl would expand brackets.
        let mut curl = format!(
            "curl --disable --globoff --noproxy '*' --request {} {}",
            self.method, self.url
        );
        if !has("user-agent") {
            curl.push_str(&option("user-agent", &quoted(AGENT)));
        }
        if !has("accept-encoding") {
            curl.push_str(&option("header", "'accept-encoding: identity'"));
        }
        if !has("content-type") {
            curl.push_str(&option("header", "'content-type:'"));
        }
        if self.body.len() >= ASKED_FROM_BYTES {
            curl.push_str(&option("header", "'expect:'"));
        }
        curl.push_str(&self.options);
        self.headers.iter().for_each(|header| curl.push_str(&option("header", &header.word)));
        with_body(&curl, self.body)
    }
}

/// Formats a curl option on a line of its own.
pub(crate) fn option(name: &str, word: &str) -> String {
    format!(" \\\n  --{name} {word}")
}

/// Adds this body to a curl command. A pipe supplies the body if it does not fit into an argument,
/// or contains characters that cannot be copied.
fn with_body(curl: &str, body: &[u8]) -> String {
    match std::str::from_utf8(body) {
        Ok(text) if text.chars().any(is_written_as_code) => piped("%b", &codes(body), curl),
        Ok(text) if text.len() > ARGUMENT_MAX_BYTES => piped("%s", text, curl),
        Ok(text) => format!("{curl}{}", option("data-raw", &quoted(text))),
        Err(_) => piped("%b", &codes(body), curl),
    }
}

fn piped(format: &str, text: &str, curl: &str) -> String {
    format!("printf '{format}' {} |\n{curl}{}", quoted(text), option("data-binary", "@-"))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// Runs the command with a fake curl, and returns the body that curl would send.
    fn body(command: &str) -> Vec<u8> {
        let curl = "curl() { if [ \"$2\" = @- ]; then cat; else printf %s \"$2\"; fi; }";
        let output = Command::new("sh").arg("-c").arg(format!("{curl}\n{command}")).output();
        let output = output.expect("a shell");
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    }

    /// Bytes with a special meaning for shells or printf, or invisible to people.
    const PARTS: [&[u8]; 14] = [
        b"'",
        b"\\",
        b"\r\n",
        b"\n",
        b"$(id)",
        b"`id`",
        b"\\0101",
        b"@x",
        b"%s",
        b"\0",
        "\u{202e}".as_bytes(),
        b"!",
        b"\xff",
        b"\xe2\x80",
    ];

    proptest! {
        #[test]
        fn a_shell_gives_curl_the_body_byte_for_byte(
            parts in vec(prop_oneof![
                any::<String>().prop_map(String::into_bytes),
                prop::sample::select(&PARTS[..]).prop_map(<[u8]>::to_vec),
            ], 0..6),
        ) {
            let sent = parts.concat();
            let command = with_body("curl", &sent);
            prop_assert!(!command.chars().any(is_written_as_code), "{command:?}");
            prop_assert_eq!(body(&command), sent);
        }
    }

    #[test]
    fn a_long_body_is_no_argument() {
        let sent = format!("\"{}'\"", "x".repeat(ARGUMENT_MAX_BYTES));
        let command = with_body("curl", sent.as_bytes());
        assert_eq!(body(&command), sent.as_bytes());
        assert!(command.starts_with("printf '%s'"));
    }
}
