//! Classifies words of letters and digits: names, ids, numbers, and numbers with a unit. A template
//! keeps names and units, and replaces ids and numbers with placeholders.
//!
//! Separate because [`super::template`] splits a text into words, and this module classifies each
//! word alone.

/// Minimum length of a hexadecimal id that has only letters.
const HEX_MIN_CHARS: usize = 8;
/// Minimum length of a hexadecimal id that contains decimal digits.
const MIXED_HEX_MIN_CHARS: usize = 6;
/// Maximum length of a name. A longer run of letters is an id.
const WORD_MAX_CHARS: usize = 64;
/// Maximum number of digits in a code such as E1001.
const CODE_MAX_DIGITS: usize = 4;
/// Maximum length of an unknown unit after a number. The known units of time may be longer.
const UNIT_MAX_CHARS: usize = 3;
/// Numbers that belong to the names of types and algorithms: `Int32`, `SHA256`.
const WIDTHS: [&str; 6] = ["16", "32", "64", "128", "256", "512"];
/// Units of time, which turn the number before them into a duration.
const UNITS_OF_TIME: [&str; 26] = [
    "ns",
    "us",
    "ms",
    "msec",
    "s",
    "sec",
    "secs",
    "m",
    "min",
    "mins",
    "h",
    "hr",
    "hrs",
    "d",
    "millis",
    "millisecond",
    "milliseconds",
    "second",
    "seconds",
    "minute",
    "minutes",
    "hour",
    "hours",
    "day",
    "days",
    "microseconds",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Varies {
    /// An identifier without a meaning of its own.
    Id,
    /// A number that varies, such as a count or a measure.
    Number,
}

/// A run of letters and digits, split into three parts.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Word<'a> {
    /// Letters that the template keeps, such as `customer` in `customer1234`.
    pub(super) name: &'a str,
    /// The kind of variation in the part after `name`; `None` if the part does not vary.
    pub(super) varies: Option<Varies>,
    /// Letters after the varying part, which the template keeps, such as `ms` in `5003ms`.
    pub(super) unit: &'a str,
}

impl<'a> Word<'a> {
    pub(super) fn new(word: &'a str) -> Self {
        let is_letters = |text: &str| text.chars().all(|c| c.is_ascii_alphabetic());
        let is_hex = word.chars().all(|c| c.is_ascii_hexdigit());
        let (name, unit) = (word.trim_end_matches(is_digit), word.trim_start_matches(is_digit));
        let id = Self { name: "", varies: Some(Varies::Id), unit: "" };
        let kept = Self { name: word, varies: None, unit: "" };
        if is_letters(word) {
            let is_id = word.len() > WORD_MAX_CHARS || is_hex && word.len() >= HEX_MIN_CHARS;
            return if is_id { id } else { kept };
        }
        if unit.is_empty() {
            return Self { varies: Some(Varies::Number), ..id };
        }
        let is_hex_id = is_hex && word.len() >= MIXED_HEX_MIN_CHARS;
        if is_hex_id || word.len() > WORD_MAX_CHARS || word.starts_with("0x") {
            id
        } else if is_letters(name) {
            let digits = word.len() - name.len();
            // E1001 and S3 are names; order1001 is not. A single digit distinguishes fields and
            // stays: line1, line2.
            let is_code = name.chars().all(|c| c.is_ascii_uppercase()) && digits <= CODE_MAX_DIGITS;
            let is_width = WIDTHS.iter().any(|width| word.ends_with(width));
            let varies = Some(Varies::Number);
            if is_code || is_width && digits <= 3 || digits == 1 {
                kept
            } else {
                Self { name, varies, unit: "" }
            }
        } else if is_letters(unit) && (unit.len() <= UNIT_MAX_CHARS || is_unit_of_time(unit)) {
            Self { name: "", varies: Some(Varies::Number), unit }
        } else {
            id
        }
    }

    /// True if the whole word is an id or a number, without a name or a unit.
    pub(super) fn is_whole_id(&self) -> bool {
        self.name.is_empty() && self.varies.is_some() && self.unit.is_empty()
    }
}

fn is_digit(c: char) -> bool {
    c.is_ascii_digit()
}

/// True if the word has few capitals, such as `SSLHandshakeException`, or no lower-case letters.
/// Random ids have many letters of both kinds.
pub(super) fn has_few_capitals(word: &str) -> bool {
    let capitals = word.chars().skip(1).filter(char::is_ascii_uppercase).count();
    capitals * 3 <= word.len() || !word.contains(|c: char| c.is_ascii_lowercase())
}

/// True if the word is a unit of time, such as `ms` in `12 ms`.
pub(super) fn is_unit_of_time(word: &str) -> bool {
    UNITS_OF_TIME.contains(&word)
}

/// True if the text is a duration of at least two units, as Go prints it: `1m30s`, `2h3.5s`. No unit
/// follows itself, so an id such as `0000d00d` is not a duration.
pub(super) fn is_duration(text: &str) -> bool {
    let (mut rest, mut last) = (text, "");
    let mut parts = 0;
    while !rest.is_empty() {
        let unit = rest.trim_start_matches(|c: char| is_digit(c) || c == '.');
        let after = unit.trim_start_matches(|c: char| c.is_ascii_alphabetic());
        let word = unit.strip_suffix(after).unwrap_or(unit);
        let is_unit = word.len() <= 2 && is_unit_of_time(word);
        if !rest.starts_with(is_digit) || !is_unit || word == last {
            return false;
        }
        (rest, last, parts) = (after, word, parts + 1);
    }
    parts >= 2
}
