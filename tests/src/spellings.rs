//! A credential in every spelling in which an endpoint may repeat it.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};

/// A way to repeat a value.
#[derive(Debug, Clone)]
pub struct Spelling {
    /// The text that the endpoint sends.
    pub echo: String,
    /// The part of `echo` that must not appear in stored text.
    pub core: String,
}

/// Returns all spellings of a value. Spellings in base64 also appear inside longer text, at each
/// alignment.
#[must_use]
pub fn spellings(value: &str) -> Vec<Spelling> {
    let bytes = value.as_bytes();
    let join = |made: fn(u8) -> String| bytes.iter().copied().map(made).collect::<String>();
    let units = value.encode_utf16().map(|unit| format!("\\u{unit:04x}"));
    let in_json = serde_json::to_string(value).unwrap_or_default();
    let all = [
        value.to_owned(),
        value.to_ascii_uppercase(),
        value.to_ascii_lowercase(),
        join(|byte| format!("%{byte:02x}")),
        join(|byte| format!("%{byte:02X}")),
        join(|byte| match byte.is_ascii_alphanumeric() {
            true => char::from(byte).to_string(),
            false => format!("%{byte:02X}"),
        }),
        units.collect(),
        in_json.get(1..in_json.len() - 1).unwrap_or_default().to_owned(),
        join(|byte| format!("{byte:02x}")),
        join(|byte| format!("{byte:02X}")),
        format!(
            "[{}]",
            bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":")
        ),
        format!(
            "[{}]",
            bytes.iter().map(|byte| format!("{byte:02X}")).collect::<Vec<_>>().join("-")
        ),
        // The UTF-16 encoding of ASCII.
        value.chars().flat_map(|character| [character, '\0']).collect(),
    ];
    let whole = all.map(|echo| Spelling { core: echo.clone(), echo });
    whole.into_iter().chain(in_base64(value)).collect()
}

fn in_base64(value: &str) -> impl Iterator<Item = Spelling> {
    let around = [("", ""), ("a", "b"), ("ab", "bcd"), ("abc", "b"), ("user:", "")];
    let alphabets = [&STANDARD, &STANDARD_NO_PAD, &URL_SAFE, &URL_SAFE_NO_PAD];
    around.into_iter().flat_map(move |(before, after)| {
        let text = format!("{before}{value}{after}");
        let bits = (before.len() * 8, (before.len() + value.len()) * 8);
        // The characters that depend only on the value.
        let (from, to) = (bits.0.div_ceil(6), bits.1 / 6);
        alphabets.map(|alphabet| {
            let echo = alphabet.encode(&text);
            Spelling { core: echo[from..to].to_owned(), echo }
        })
    })
}
