//! [`Word`]: a word of an enumeration as it travels, also one of a newer version.
//!
//! Two versions of the functions run side by side for a while, and the older one reads what the newer one
//! wrote. A word that it does not know is kept as it is, so that it is still there when the newer one
//! reads the message again, or in the dead letter. Only words that are reported, or may be ignored, are
//! read like this: one that says what has to be done makes its attribute unreadable instead.

use std::fmt;

/// The longest word: as a value of a metric's dimension it must stay short.
const WORD_MAX_BYTES: usize = 64;

/// A word of an enumeration, known to this version or not.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Word<T> {
    /// One that this version writes too.
    Known(T),
    /// One of a newer version, verbatim: letters, digits, `_` and `-`.
    Other(Box<str>),
}

impl<T> Word<T> {
    /// The word that this text is, with the value that it has in this version.
    ///
    /// # Errors
    /// When no version would write it: a word goes into logs, metrics and dead letters.
    pub fn read(text: &str, known: Option<T>) -> Result<Self, String> {
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        let is_word = (1..=WORD_MAX_BYTES).contains(&text.len()) && text.bytes().all(is_part);
        match known {
            Some(value) => Ok(Self::Known(value)),
            None if is_word => Ok(Self::Other(text.into())),
            None => Err(format!("{text:?} is no word")),
        }
    }
}

impl<T: Copy> Word<T> {
    /// Its value, if this version knows it.
    #[must_use]
    pub fn known(&self) -> Option<T> {
        match self {
            Self::Known(value) => Some(*value),
            Self::Other(_) => None,
        }
    }
}

impl<T> From<T> for Word<T> {
    fn from(value: T) -> Self {
        Self::Known(value)
    }
}

impl<T: PartialEq> PartialEq<T> for Word<T> {
    fn eq(&self, value: &T) -> bool {
        matches!(self, Self::Known(known) if known == value)
    }
}

impl<T: fmt::Display> fmt::Display for Word<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(value) => value.fmt(f),
            Self::Other(word) => f.pad(word),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delivery::outcome::Outcome;

    #[test]
    fn a_word_is_read_and_written_back_verbatim_known_or_not() {
        let longest = "x".repeat(WORD_MAX_BYTES);
        for text in ["Busy", "busy", "Out_of-Paper2", &longest] {
            let word: Word<Outcome> = Word::read(text, text.parse().ok()).unwrap();
            assert_eq!(word.to_string(), text);
            assert_eq!(word.known(), (text == "Busy").then_some(Outcome::Busy), "{text}");
            assert_eq!(word == Outcome::Busy, text == "Busy", "{text}");
        }
    }

    #[test]
    fn what_no_version_would_write_is_no_word() {
        let long = "x".repeat(WORD_MAX_BYTES + 1);
        for text in ["", " ", "a b", "a\n", "größe", "a\"", &long] {
            assert!(Word::<Outcome>::read(text, None).is_err(), "{text:?}");
        }
    }
}
