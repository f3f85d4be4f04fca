//! The reasons for which a text is not an expression, and the limits beyond which it is none.
//!
//! Separate because both steps of reading fail in these ways: the one that looks at characters, and the grammar.

use thiserror::Error;

/// The most bytes of an expression, as it is in a file and as it is written.
pub(super) const TEXT_MAX_BYTES: usize = 8_192;

/// The most tokens of an expression.
pub(super) const TOKENS_MAX: usize = 1_000;

/// The most expressions within each other.
pub(super) const DEPTH_MAX: usize = 32;

/// Why a text is not an expression. Characters are counted from 1; texts in quotes are not shown.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ParseError {
    /// Another token than the grammar wants.
    #[error("at character {at}: {expected} is expected, found {found}")]
    Unexpected {
        /// The number of its first character.
        at: usize,
        /// What is allowed there.
        expected: &'static str,
        /// What is there.
        found: String,
    },
    /// A character that begins nothing.
    #[error("at character {at}: not a part of an expression")]
    UnknownCharacter {
        /// Its number.
        at: usize,
    },
    /// A text without its closing quote.
    #[error("at character {at}: the text has no closing quote")]
    TextWithoutEnd {
        /// The number of its opening quote.
        at: usize,
    },
    /// A number of more than 32 bits.
    #[error("at character {at}: a number is -2147483648 to 2147483647")]
    NumberTooLarge {
        /// The number of its first character.
        at: usize,
    },
    /// `MissingFunctionError`.
    #[error("at character {at}: there is no function {name} with {arguments} arguments")]
    NoFunction {
        /// The number of its first character.
        at: usize,
        /// Its name, in capitals.
        name: String,
        /// How many arguments it has.
        arguments: usize,
    },
    /// Too many expressions within each other.
    #[error("at character {at}: parts nest at most {DEPTH_MAX} deep")]
    TooDeep {
        /// The number of the first character of what is too deep.
        at: usize,
    },
    /// Too many words, values and symbols.
    #[error("an expression has at most {TOKENS_MAX} words, values and symbols")]
    TooManyTokens,
    /// Too many bytes.
    #[error("an expression has at most {TEXT_MAX_BYTES} bytes")]
    TooLong,
}
