//! Commands for a shell that make a request with curl: what a person copies. Pure.
//!
//! Separate because the text has to be correct for a shell, whatever is in an event. The page of dead letters
//! and `try` print such commands; each knows its own headers, and what must not be in them.

use delivery::shell::quoted;

use crate::text;

/// A longer event does not fit into one argument of a program, so it goes through a pipe:
/// `MAX_ARG_STRLEN` of Linux, 128 KiB (execve(2)), with room for quotes.
const ARGUMENT_MAX_BYTES: usize = 100 * 1_024;

/// A text as one word of a shell, with what cannot be seen as octal numbers: so that it can be copied.
pub(crate) fn typed(text: &str) -> String {
    if text.chars().any(is_written_as_code) {
        return format!("\"$(printf '%b' {})\"", quoted(&codes(text.as_bytes())));
    }
    quoted(text)
}

/// A command of these words.
pub(crate) fn command(words: &[&str]) -> String {
    words.iter().map(|word| typed(word)).collect::<Vec<_>>().join(" ")
}

/// An option on a line of its own.
pub(crate) fn option(name: &str, word: &str) -> String {
    format!(" \\\n  --{name} {word}")
}

/// A curl command with this body, to the byte. Where it cannot be an argument, or could not be copied, it comes
/// through a pipe.
pub(crate) fn with_body(curl: &str, body: &[u8]) -> String {
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

fn is_written_as_code(c: char) -> bool {
    text::is_invisible(c) && !matches!(c, '\n' | '\t')
}

/// Bytes for `%b` of printf (POSIX): what is no text or cannot be seen as octal numbers, so that it can be copied.
fn codes(body: &[u8]) -> String {
    let mut codes = String::with_capacity(body.len());
    let code = |byte: u8| format!("\\0{byte:03o}");
    for chunk in body.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\\' => codes.push_str(r"\\"),
                c if is_written_as_code(c) => {
                    c.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| codes.push_str(&code(byte)));
                }
                c => codes.push(c),
            }
        }
        chunk.invalid().iter().for_each(|byte| codes.push_str(&code(*byte)));
    }
    codes
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// What curl would get as a body: an argument, or standard input.
    fn body(command: &str) -> Vec<u8> {
        let curl = "curl() { if [ \"$2\" = @- ]; then cat; else printf %s \"$2\"; fi; }";
        let output = Command::new("sh").arg("-c").arg(format!("{curl}\n{command}")).output();
        let output = output.expect("a shell");
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    }

    /// What shells, printf and people read in another way than as it is.
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
    fn a_word_with_what_cannot_be_seen_can_be_copied_and_is_the_same() {
        let text = "x-p: it's \\ 100 % \u{202e}$(id)\u{200b}";
        let word = typed(text);
        assert!(!word.chars().any(is_written_as_code), "{word:?}");
        let output = Command::new("sh").arg("-c").arg(format!("printf %s {word}")).output();
        assert_eq!(String::from_utf8(output.unwrap().stdout).unwrap(), text);
        assert_eq!(typed("a b"), "'a b'");
    }

    #[test]
    fn each_word_of_a_command_reaches_the_program_as_it_is() {
        let words = [
            "%s\\n",
            "a b",
            "it's",
            "$(id)",
            "`id`",
            "; id",
            "two\nlines",
            "a\"b",
            "*",
            "",
            "-x",
            "é",
        ];
        let command = command(&[&["printf"], &words[..]].concat());
        let output = Command::new("sh").arg("-c").arg(&command).output().unwrap();
        let printed = words[1..].join("\n") + "\n";
        assert_eq!(String::from_utf8(output.stdout).unwrap(), printed, "{command}");
    }

    #[test]
    fn a_long_body_is_no_argument() {
        let sent = format!("\"{}'\"", "x".repeat(ARGUMENT_MAX_BYTES));
        let command = with_body("curl", sent.as_bytes());
        assert_eq!(body(&command), sent.as_bytes());
        assert!(command.starts_with("printf '%s'"));
    }
}
