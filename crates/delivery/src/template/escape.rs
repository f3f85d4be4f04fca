//! Escapes text in JSON strings.

use super::budget::Bounded;
use super::error::Fault;

/// Appends a text, escaped for the inside of a JSON string, without quotes.
///
/// # Errors
///
/// Fails if the output is full or the fuel is used up.
pub(super) fn push_json_text(text: &str, out: &mut Bounded<'_>) -> Result<(), Fault> {
    let mut rest = text;
    while let Some(at) =
        rest.find(|character: char| character < ' ' || matches!(character, '"' | '\\'))
    {
        let (plain, tail) = rest.split_at(at);
        out.push(plain)?;
        let mut characters = tail.chars();
        match characters.next() {
            Some('"') => out.push("\\\"")?,
            Some('\\') => out.push("\\\\")?,
            Some('\n') => out.push("\\n")?,
            Some('\r') => out.push("\\r")?,
            Some('\t') => out.push("\\t")?,
            Some(control) => out.push(&format!("\\u{:04x}", u32::from(control)))?,
            None => {}
        }
        rest = characters.as_str();
    }
    out.push(rest)
}
