//! [`ParseError`]: the reasons why a text is not an expression, and the limits of expressions.
//!
//! This module is separate because both the lexer and the grammar return these errors.

use thiserror::Error;

/// Maximum size of an expression in bytes, in the file and in canonical form.
pub(super) const TEXT_MAX_BYTES: usize = 8_192;

/// Maximum number of tokens of an expression.
pub(super) const TOKENS_MAX: usize = 1_000;

/// Maximum nesting of expressions.
pub(super) const DEPTH_MAX: usize = 32;

/// The reason why a text is not an expression. Positions are in characters from 1. No error quotes
/// a literal.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ParseError {
    /// A token that the grammar does not allow here.
    #[error("at character {at}: {expected} is expected, found {found}")]
    Unexpected {
        /// The position of its first character.
        at: usize,
        /// The tokens that are allowed here.
        expected: &'static str,
        /// The kind of token that was found.
        found: String,
    },
    /// A character that starts no token.
    #[error("at character {at}: not a part of an expression")]
    UnknownCharacter {
        /// The position of the character.
        at: usize,
    },
    /// A quoted text without a closing quote.
    #[error("at character {at}: the text has no closing quote")]
    TextWithoutEnd {
        /// The position of the opening quote.
        at: usize,
    },
    /// An integer beyond 32 bits.
    #[error("at character {at}: a number is -2147483648 to 2147483647")]
    NumberTooLarge {
        /// The position of its first character.
        at: usize,
    },
    /// `MissingFunctionError`: no function has this name and number of arguments.
    #[error("at character {at}: there is no function {name} with {arguments} arguments")]
    NoFunction {
        /// The position of its first character.
        at: usize,
        /// The name of the function, in upper case.
        name: String,
        /// The number of arguments of the call.
        arguments: usize,
    },
    /// Expressions are nested too deep.
    #[error("at character {at}: parts nest at most {DEPTH_MAX} deep")]
    TooDeep {
        /// The position of the first character beyond the limit.
        at: usize,
    },
    /// The expression has too many words, values and symbols.
    #[error("an expression has at most {TOKENS_MAX} words, values and symbols")]
    TooManyTokens,
    /// The expression has too many bytes.
    #[error("an expression has at most {TEXT_MAX_BYTES} bytes")]
    TooLong,
}
