//! [`Word`]: an enumeration value in a message, which may be unknown to this version of the
//! program.
//!
//! During a deployment, two versions of the functions run at the same time, and the older one reads
//! messages of the newer one. An unknown value is kept unchanged, for the newer version and for the
//! dead letter. Only values that are reported or may be ignored have this type. If a value
//! determines an action and is unknown, the whole attribute of the message is unreadable.

use std::fmt;

/// Maximum length of an unknown value. Values become metric dimensions, which should be short.
const WORD_MAX_BYTES: usize = 64;

/// A value of an enumeration that a message contains, known to this version or not.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Word<T> {
    /// A value that this version of the program defines.
    Known(T),
    /// An unknown value, verbatim: letters, digits, `_` and `-`.
    Other(Box<str>),
}

impl<T> Word<T> {
    /// Wraps the text of a value. `known` is the value that this version defines for the text, if
    /// any.
    ///
    /// # Errors
    /// Fails if an unknown value is empty, too long, or contains characters other than letters,
    /// digits, `_` and `-`. The reason is that values are written to logs, metrics and dead
    /// letters.
    pub fn read(text: &str, known: Option<T>) -> Result<Self, String> {
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        let is_word = (1..=WORD_MAX_BYTES).contains(&text.len()) && text.bytes().all(is_part);
        match known {
            Some(value) => Ok(Self::Known(value)),
            None if is_word => Ok(Self::Other(text.into())),
            None => Err(format!(
                "{text:?} is not a valid name: expected 1 to {WORD_MAX_BYTES} letters, digits, _ \
                 and -"
            )),
        }
    }
}

impl<T: Copy> Word<T> {
    /// Returns the value; `None` if this version does not define it.
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
