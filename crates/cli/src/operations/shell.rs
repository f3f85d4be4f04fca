//! Formats arguments and commands for a shell, so that people can copy them. Pure.
//!
//! Separate because the text must be correct for a shell, whatever an event or a name contains.

use delivery::shell::quoted;

use crate::terminal::text;

/// Quotes a text as one shell argument. Invisible characters become octal escapes, so that the
/// argument can be copied.
pub(crate) fn typed(text: &str) -> String {
    if text.chars().any(is_written_as_code) {
        return format!("\"$(printf '%b' {})\"", quoted(&codes(text.as_bytes())));
    }
    quoted(text)
}

/// Quotes each argument, and joins them to a command.
pub(crate) fn command(words: &[&str]) -> String {
    words.iter().map(|word| typed(word)).collect::<Vec<_>>().join(" ")
}

/// Returns true for characters that must be escaped: all invisible ones, except line ends and tabs.
pub(crate) fn is_written_as_code(c: char) -> bool {
    text::is_invisible(c) && !matches!(c, '\n' | '\t')
}

/// Escapes bytes for `%b` of printf (POSIX). Invisible characters and invalid UTF-8 become octal
/// escapes, so that the text can be copied.
pub(crate) fn codes(body: &[u8]) -> String {
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

    use super::*;

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
}
