//! Reads the text of a file that a person wrote, such as subscriptions or events.
//!
//! Separate because the functions and the command line read the same files: `check` must accept
//! exactly what dispatch accepts. Text is UTF-8, or UTF-16 as PowerShell writes it.
//!
//! Promises: the error for any other encoding shows how to convert the file. The error for an
//! invalid character contains its line.

use std::io;
use std::path::Path;

/// The reason why the bytes of a file are not text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotText {
    /// The text contains a byte that is invalid in UTF-8.
    #[error(
        "line {line} is not UTF-8 text: it contains the byte 0x{byte:02X}; if the encoding is \
         {encoding}, convert the file: iconv -f {encoding} -t utf-8"
    )]
    Byte {
        /// The line of the first invalid byte, counted from 1.
        line: usize,
        /// The value of the invalid byte; the message shows it in hexadecimal.
        byte: u8,
        /// The probable encoding of the file, as `iconv` names it.
        encoding: &'static str,
    },
    /// The text ends within a character.
    #[error("line {line} is not UTF-8 text: the file ends within a character and may be truncated")]
    Truncated {
        /// The last line of the file, counted from 1.
        line: usize,
    },
    /// The file begins like UTF-16, but a later code unit is invalid.
    #[error(
        "line {line} is not UTF-16 text, but the file begins as UTF-16; save the file as UTF-8"
    )]
    Utf16 {
        /// The line of the first invalid code unit, counted from 1.
        line: usize,
    },
    /// The text is UTF-32.
    #[error("the encoding is UTF-32; convert the file: iconv -f utf-32 -t utf-8")]
    Utf32,
    /// The bytes are binary data.
    #[error("the file is binary, not text")]
    Binary,
}

impl From<NotText> for io::Error {
    fn from(problem: NotText) -> Self {
        Self::new(io::ErrorKind::InvalidData, problem)
    }
}

/// Reads the text of a file.
///
/// # Errors
/// Fails if the file cannot be read, or is not text.
pub fn read(path: &Path) -> io::Result<String> {
    Ok(text_of(std::fs::read(path)?)?)
}

/// Decodes text. The encoding is taken from the byte order mark, otherwise from zero bytes beside
/// an ASCII character (YAML 1.2.2, 5.2, character encodings).
///
/// # Errors
/// Fails if the bytes are neither UTF-8 nor UTF-16.
pub fn text_of(bytes: Vec<u8>) -> Result<String, NotText> {
    match bytes.as_slice() {
        [0xff, 0xfe, 0, 0, ..]
        | [0, 0, 0xfe, 0xff, ..]
        | [1..=255, 0, 0, 0, ..]
        | [0, 0, 0, 1..=255, ..] => Err(NotText::Utf32),
        [0xff, 0xfe, ..] | [1..=255, 0, ..] => utf_16(&bytes, u16::from_le_bytes),
        [0xfe, 0xff, ..] | [0, 1..=255, ..] => utf_16(&bytes, u16::from_be_bytes),
        _ => utf_8(bytes),
    }
}

fn utf_16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Result<String, NotText> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    let mut text = String::new();
    for character in char::decode_utf16(pairs.iter().copied().map(unit)) {
        match character {
            // Skip the byte order mark.
            Ok('\u{feff}') if text.is_empty() => {}
            Ok(character) => text.push(character),
            Err(_) => return Err(NotText::Utf16 { line: line_after(text.as_bytes()) }),
        }
    }
    if rest.is_empty() {
        Ok(text)
    } else {
        Err(NotText::Utf16 { line: line_after(text.as_bytes()) })
    }
}

fn utf_8(bytes: Vec<u8>) -> Result<String, NotText> {
    String::from_utf8(bytes).map_err(|error| {
        let bytes = error.as_bytes();
        let (before, rest) = bytes.split_at(error.utf8_error().valid_up_to());
        let line = line_after(before);
        match rest.first() {
            _ if bytes.contains(&0) => NotText::Binary,
            Some(byte) if error.utf8_error().error_len().is_some() => {
                NotText::Byte { line, byte: *byte, encoding: encoding_of(bytes) }
            }
            Some(_) | None => NotText::Truncated { line },
        }
    })
}

/// Guesses the encoding of a text with one byte per character. Of the two common encodings, only
/// windows-1252 has characters from 0x80 to 0x9F.
fn encoding_of(bytes: &[u8]) -> &'static str {
    let is_of_windows = bytes.iter().any(|byte| matches!(byte, 0x80..=0x9f));
    if is_of_windows { "windows-1252" } else { "latin1" }
}

/// Returns the line of the byte that follows `bytes`, counted from 1.
fn line_after(bytes: &[u8]) -> usize {
    1 + bytes.iter().filter(|byte| **byte == b'\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes of a text in UTF-16.
    fn in_utf_16(text: &str, bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
        text.encode_utf16().flat_map(bytes).collect()
    }

    #[test]
    fn text_is_utf_8_or_utf_16_with_and_without_a_byte_order_mark() {
        let text = "a: ü😀\n";
        assert_eq!(text_of(text.into()), Ok(text.to_owned()));
        let marked = format!("\u{feff}{text}");
        assert_eq!(text_of(marked.clone().into()), Ok(marked.clone()));
        for bytes in [u16::to_le_bytes as fn(u16) -> [u8; 2], u16::to_be_bytes] {
            assert_eq!(text_of(in_utf_16(text, bytes)), Ok(text.to_owned()));
            assert_eq!(text_of(in_utf_16(&marked, bytes)), Ok(text.to_owned()));
        }
        assert_eq!(text_of(Vec::new()), Ok(String::new()));
    }

    #[test]
    fn what_is_not_text_is_refused_with_its_line_and_how_to_convert_it() {
        let cut = |mut bytes: Vec<u8>| {
            bytes.pop();
            bytes
        };
        let mut lone = in_utf_16("\u{feff}a\nb", u16::to_le_bytes);
        lone.extend([0x00, 0xd8, b'c', 0]);
        for (bytes, expected) in [
            (
                b"a: 1\nb: caf\xe9\nc: \xe9\n".to_vec(),
                "line 2 is not UTF-8 text: it contains the byte 0xE9; if the encoding is latin1, \
                 convert the file: iconv -f latin1 -t utf-8",
            ),
            (
                b"a: \xe9\n\nb: \x93quoted\x94\n".to_vec(),
                "line 1 is not UTF-8 text: it contains the byte 0xE9; if the encoding is \
                 windows-1252, convert the file: iconv -f windows-1252 -t utf-8",
            ),
            (
                cut("a: 1\nb: 😀".into()),
                "line 2 is not UTF-8 text: the file ends within a character and may be truncated",
            ),
            (
                lone,
                "line 2 is not UTF-16 text, but the file begins as UTF-16; save the file as UTF-8",
            ),
            (
                cut(in_utf_16("\u{feff}a\n\nb", u16::to_be_bytes)),
                "line 3 is not UTF-16 text, but the file begins as UTF-16; save the file as UTF-8",
            ),
            (
                vec![0xff, 0xfe, 0, 0, b'a', 0, 0, 0],
                "the encoding is UTF-32; convert the file: iconv -f utf-32 -t utf-8",
            ),
            (
                vec![0, 0, 0, b'a'],
                "the encoding is UTF-32; convert the file: iconv -f utf-32 -t utf-8",
            ),
            (b"\x1f\x8b\x08\x00\x00".to_vec(), "the file is binary, not text"),
        ] {
            assert_eq!(text_of(bytes).unwrap_err().to_string(), expected);
        }
    }
}
