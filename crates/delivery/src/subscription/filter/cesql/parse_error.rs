//! [`ParseError`]: the reason why a text is not a valid expression, and the limits of expressions.
//!
//! This module is separate because both the lexer and the grammar return these errors.

use thiserror::Error;

/// Maximum size of an expression in bytes, both as written and in canonical form.
pub(super) const TEXT_MAX_BYTES: usize = 8_192;

/// Maximum number of tokens in an expression.
pub(super) const TOKENS_MAX: usize = 1_000;

/// Maximum nesting depth of expressions.
pub(super) const DEPTH_MAX: usize = 32;

/// The reason why a text is not a valid expression. Positions are in characters and count from 1.
/// No error quotes a literal.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ParseError {
    /// A token that the grammar does not allow here.
    #[error("at character {at}: expected {expected}, found {found}")]
    Unexpected {
        /// The position of the token's first character.
        at: usize,
        /// Description of the tokens that are allowed here.
        expected: &'static str,
        /// Description of the token that was found.
        found: String,
    },
    /// A character with which no token can begin.
    #[error("at character {at}: this character is not allowed in an expression")]
    UnknownCharacter {
        /// The position of the character.
        at: usize,
    },
    /// A quoted text without a closing quote.
    #[error("at character {at}: the string has no closing quote")]
    TextWithoutEnd {
        /// The position of the opening quote.
        at: usize,
    },
    /// An integer beyond 32 bits.
    #[error("at character {at}: a number must be -2147483648 to 2147483647")]
    NumberTooLarge {
        /// The position of the number's first character.
        at: usize,
    },
    /// `MissingFunctionError`: no function has this name and number of arguments.
    #[error("at character {at}: no function {name} accepts {arguments} arguments")]
    NoFunction {
        /// The position of the function name's first character.
        at: usize,
        /// The name of the called function, in upper case.
        name: String,
        /// The number of arguments in the call.
        arguments: usize,
    },
    /// The expressions are nested too deeply.
    #[error("at character {at}: the expression is nested more than {DEPTH_MAX} levels deep")]
    TooDeep {
        /// The position of the first character that exceeds the limit.
        at: usize,
    },
    /// The expression has more than `TOKENS_MAX` tokens.
    #[error("the expression has more than {TOKENS_MAX} words, values and symbols")]
    TooManyTokens,
    /// The expression has more than `TEXT_MAX_BYTES` bytes.
    #[error("the expression is longer than {TEXT_MAX_BYTES} bytes")]
    TooLong,
}
