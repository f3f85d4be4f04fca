//! Splits the text of an expression into tokens.
//!
//! This module is separate because only it works with characters. It returns at most [`TOKENS_MAX`]
//! tokens, each with the position of its first character.

use super::parse_error::{ParseError, TOKENS_MAX};

const SPACES: [char; 4] = [' ', '\t', '\r', '\n'];

/// Symbols of the language. Each symbol precedes the symbols that are prefixes of it.
const SYMBOLS: [&str; 15] =
    ["!=", "<>", "<=", ">=", "<", ">", "=", "(", ")", ",", "*", "/", "%", "+", "-"];

/// A token, with the position of its first character. Positions count from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token<'t> {
    pub(super) at: usize,
    pub(super) kind: Kind<'t>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind<'t> {
    /// A name or keyword: letters, digits and underscores.
    Word(&'t str),
    /// A number: digits only.
    Digits(&'t str),
    /// A quoted text without its quotes. A backslash before a quote is removed.
    Text(String),
    Symbol(&'static str),
}

/// Splits the text of an expression into tokens.
pub(super) fn tokens(text: &str) -> Result<Vec<Token<'_>>, ParseError> {
    let mut lexer = Lexer { rest: text, at: 1 };
    let mut tokens = Vec::new();
    loop {
        lexer.take(|c| SPACES.contains(&c));
        if lexer.rest.is_empty() {
            return Ok(tokens);
        }
        if tokens.len() == TOKENS_MAX {
            return Err(ParseError::TooManyTokens);
        }
        let at = lexer.at;
        tokens.push(Token { at, kind: lexer.next()? });
    }
}

struct Lexer<'t> {
    rest: &'t str,
    at: usize,
}

impl<'t> Lexer<'t> {
    /// Consumes the next characters for which the condition is true, and returns them.
    fn take(&mut self, is_kind: impl Fn(char) -> bool) -> &'t str {
        let end = self.rest.find(|c| !is_kind(c)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at_checked(end).unwrap_or((self.rest, ""));
        self.at += taken.chars().count();
        self.rest = rest;
        taken
    }

    fn next(&mut self) -> Result<Kind<'t>, ParseError> {
        let symbol =
            SYMBOLS.into_iter().find_map(|symbol| Some((symbol, self.rest.strip_prefix(symbol)?)));
        if let Some((symbol, rest)) = symbol {
            self.at += symbol.len();
            self.rest = rest;
            return Ok(Kind::Symbol(symbol));
        }
        for quote in ['\'', '"'] {
            if let Some(inner) = self.rest.strip_prefix(quote) {
                return self.text(quote, inner);
            }
        }
        match self.take(|c| c.is_ascii_alphanumeric() || c == '_') {
            "" => Err(ParseError::UnknownCharacter { at: self.at }),
            digits if digits.bytes().all(|byte| byte.is_ascii_digit()) => Ok(Kind::Digits(digits)),
            word => Ok(Kind::Word(word)),
        }
    }

    /// Reads a quoted text. A backslash and the next character belong together. The backslash is
    /// removed only before the quote.
    fn text(&mut self, quote: char, inner: &'t str) -> Result<Kind<'t>, ParseError> {
        let (mut characters, mut text, mut count) = (inner.chars(), String::new(), 1);
        while let Some(character) = characters.next() {
            count += 1;
            if character == quote {
                self.at += count;
                self.rest = characters.as_str();
                return Ok(Kind::Text(text));
            }
            let escaped = (character == '\\').then(|| characters.next()).flatten();
            count += usize::from(escaped.is_some());
            if escaped != Some(quote) {
                text.push(character);
            }
            text.extend(escaped);
        }
        Err(ParseError::TextWithoutEnd { at: self.at })
    }
}
