//! Parses tokens into the tree of an expression.
//!
//! This module is separate because only it defines precedence. The sources are the grammar of
//! CESQL 1.0 and Knative's implementation. The operators, from the tightest to the loosest, are:
//! - `NOT` and `-` before a value;
//! - `LIKE` and `IN`;
//! - `* / %`;
//! - `+ -`;
//! - comparisons;
//! - `AND`, `OR` and `XOR`, which have the same precedence and are right-associative.
//!
//! The nesting depth is limited to [`DEPTH_MAX`].

use std::borrow::Cow;

use super::expression::{Binary, Expression, Logic};
use super::functions::Function;
use super::lexer::{Kind, Token};
use super::parse_error::{DEPTH_MAX, ParseError};
use super::pattern::Pattern;
use super::value::Value;

const KEYWORDS: [&str; 9] = ["AND", "OR", "XOR", "NOT", "LIKE", "EXISTS", "IN", "TRUE", "FALSE"];

/// A parsed expression, with a warning for its author.
pub(super) struct Parsed {
    pub(super) expression: Expression,
    /// The position at which the author may have mistaken the precedence of operators.
    pub(super) mistakable_at: Option<usize>,
}

/// Parses the tokens of a text. `characters` is the length of the text, for the positions of
/// errors.
pub(super) fn parse(tokens: &[Token<'_>], characters: usize) -> Result<Parsed, ParseError> {
    let end = characters + 1;
    let mut parser = Parser { tokens, end, depth: 0, mistakable_at: None };
    let expression = parser.expression()?;
    if !parser.tokens.is_empty() {
        return parser.unexpected("an operator or the end");
    }
    if expression.depth() > DEPTH_MAX {
        return Err(ParseError::TooDeep { at: 1 });
    }
    Ok(Parsed { expression, mistakable_at: parser.mistakable_at })
}

struct Parser<'p> {
    /// The tokens that have not been consumed yet.
    tokens: &'p [Token<'p>],
    end: usize,
    depth: usize,
    mistakable_at: Option<usize>,
}

impl<'p> Parser<'p> {
    /// Returns the position of the next token, or the end of the text.
    fn at(&self) -> usize {
        self.tokens.first().map_or(self.end, |token| token.at)
    }

    fn unexpected<T>(&self, expected: &'static str) -> Result<T, ParseError> {
        let found = match self.tokens.first().map(|token| &token.kind) {
            None => "the end".to_owned(),
            Some(Kind::Word(word)) => keyword(word).unwrap_or("a name").to_owned(),
            Some(Kind::Digits(_)) => "a number".to_owned(),
            Some(Kind::Text(_)) => "a string".to_owned(),
            Some(Kind::Symbol(symbol)) => (*symbol).to_owned(),
        };
        Err(ParseError::Unexpected { at: self.at(), expected, found })
    }

    /// Consumes the next token if `find` returns a value for it, and returns that value.
    fn accept<T>(&mut self, find: impl FnOnce(&'p Kind<'p>) -> Option<T>) -> Option<T> {
        let (first, rest) = self.tokens.split_first()?;
        let found = find(&first.kind)?;
        self.tokens = rest;
        Some(found)
    }

    fn accept_symbol(&mut self, expected: &str) -> bool {
        let is_it = |kind: &Kind<'_>| matches!(kind, Kind::Symbol(symbol) if *symbol == expected);
        self.accept(|kind| is_it(kind).then_some(())).is_some()
    }

    fn accept_word(&mut self, word: &str) -> bool {
        let is_it =
            |kind: &Kind<'_>| matches!(kind, Kind::Word(found) if found.eq_ignore_ascii_case(word));
        self.accept(|kind| is_it(kind).then_some(())).is_some()
    }

    fn expect_symbol(&mut self, symbol: &'static str) -> Result<(), ParseError> {
        if self.accept_symbol(symbol) { Ok(()) } else { self.unexpected(symbol) }
    }

    /// Records a position at which the author may have mistaken the precedence.
    fn note_mistakable(&mut self, at: usize) {
        self.mistakable_at.get_or_insert(at);
    }

    /// Parses an expression: conditions that are joined with logical operators.
    fn expression(&mut self) -> Result<Expression, ParseError> {
        let (mut operands, mut words) = (vec![self.binary(1)?], Vec::new());
        loop {
            let at = self.at();
            let all = [Logic::And, Logic::Or, Logic::Xor];
            let Some(word) = all.into_iter().find(|operator| self.accept_word(operator.as_str()))
            else {
                return Ok(joined(operands, words));
            };
            if words.last().is_some_and(|before| *before != word) {
                self.note_mistakable(at);
            }
            words.push(word);
            operands.push(self.binary(1)?);
        }
    }

    /// Parses comparisons and arithmetic with at least this precedence. The operators are
    /// left-associative.
    fn binary(&mut self, least_rank: u8) -> Result<Expression, ParseError> {
        let mut left = self.tested()?;
        loop {
            let operator = self.accept(|kind| {
                let Kind::Symbol(symbol) = kind else { return None };
                let (_, operator) =
                    Binary::SYMBOLS.into_iter().find(|(listed, _)| listed == symbol)?;
                (operator.rank() >= least_rank).then_some(operator)
            });
            let Some(operator) = operator else { return Ok(left) };
            let right = Box::new(self.binary(operator.rank() + 1)?);
            left = Expression::Binary { left: Box::new(left), operator, right };
        }
    }

    /// Parses a value, with a following `LIKE` or `IN` if there is one.
    fn tested(&mut self) -> Result<Expression, ParseError> {
        let (at, is_not) = (self.at(), self.next_is_word("NOT"));
        let mut tested = self.prefixed()?;
        // `NOT` binds to the value and not to the comparison, which authors may not expect.
        if is_not && self.next_is_test() {
            self.note_mistakable(at);
        }
        loop {
            let negated = self.accept_word("NOT");
            if self.accept_word("LIKE") {
                let pattern = self.pattern()?;
                tested = Expression::Like { text: Box::new(tested), pattern, negated };
            } else if self.accept_word("IN") {
                self.expect_symbol("(")?;
                let set = self.list()?;
                tested = Expression::In { value: Box::new(tested), set, negated };
            } else if negated {
                return self.unexpected("LIKE or IN");
            } else {
                return Ok(tested);
            }
        }
    }

    fn next_is_word(&self, word: &str) -> bool {
        let next = self.tokens.first().map(|token| &token.kind);
        matches!(next, Some(Kind::Word(found)) if found.eq_ignore_ascii_case(word))
    }

    /// Returns true if the next token is an operator symbol, `NOT`, `LIKE` or `IN`. Such a token
    /// continues the condition; a logical operator ends it.
    fn next_is_test(&self) -> bool {
        let is_symbol = self.tokens.first().is_some_and(|token| {
            Binary::SYMBOLS.iter().any(|(symbol, _)| token.kind == Kind::Symbol(symbol))
        });
        is_symbol || ["NOT", "LIKE", "IN"].into_iter().any(|word| self.next_is_word(word))
    }

    fn pattern(&mut self) -> Result<Pattern, ParseError> {
        let text = self.accept(|kind| match kind {
            Kind::Text(text) => Some(text.clone()),
            Kind::Word(_) | Kind::Digits(_) | Kind::Symbol(_) => None,
        });
        text.map_or_else(|| self.unexpected("a string in quotes"), |text| Ok(Pattern::new(text)))
    }

    /// Parses expressions that are separated by commas, up to the closing parenthesis.
    fn list(&mut self) -> Result<Vec<Expression>, ParseError> {
        let mut list = vec![self.nested(Self::expression)?];
        while self.accept_symbol(",") {
            list.push(self.nested(Self::expression)?);
        }
        self.expect_symbol(")")?;
        Ok(list)
    }

    /// Calls `read` one nesting level deeper. Fails if the level exceeds the limit.
    fn nested<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, ParseError>,
    ) -> Result<T, ParseError> {
        if self.depth == DEPTH_MAX {
            return Err(ParseError::TooDeep { at: self.at() });
        }
        self.depth += 1;
        let read = read(self);
        self.depth -= 1;
        read
    }

    /// Parses a value, with a preceding `NOT` or `-` if there is one. A sign directly before digits
    /// is part of the number.
    fn prefixed(&mut self) -> Result<Expression, ParseError> {
        if let [sign, Token { at, kind: Kind::Digits(digits) }, rest @ ..] = self.tokens
            && let Kind::Symbol(symbol @ ("+" | "-")) = sign.kind
            && *at == sign.at + 1
        {
            self.tokens = rest;
            return integer(sign.at, &format!("{symbol}{digits}"));
        }
        if self.accept_word("NOT") {
            return Ok(Expression::Not(Box::new(self.nested(Self::prefixed)?)));
        }
        if self.accept_symbol("-") {
            return Ok(Expression::Negate(Box::new(self.nested(Self::prefixed)?)));
        }
        self.value()
    }

    fn value(&mut self) -> Result<Expression, ParseError> {
        if self.accept_symbol("(") {
            let inner = self.nested(Self::expression)?;
            self.expect_symbol(")")?;
            return Ok(inner);
        }
        let at = self.at();
        if let Some(literal) = self.accept(|kind| literal(at, kind)) {
            return literal;
        }
        if self.accept_word("EXISTS") {
            return Ok(Expression::Exists(self.attribute()?));
        }
        if let [Token { kind: Kind::Word(name), .. }, after, rest @ ..] = self.tokens
            && after.kind == Kind::Symbol("(")
            && keyword(name).is_none()
        {
            self.tokens = rest;
            return self.call(at, name);
        }
        self.attribute().map(Expression::Attribute)
    }

    /// Parses the arguments of a function call, after its opening parenthesis.
    fn call(&mut self, at: usize, name: &str) -> Result<Expression, ParseError> {
        let arguments = if self.accept_symbol(")") { Vec::new() } else { self.list()? };
        let function = Function::find(name, arguments.len());
        let missing = || ParseError::NoFunction {
            at,
            name: name.to_ascii_uppercase(),
            arguments: arguments.len(),
        };
        Ok(Expression::Call { function: function.ok_or_else(missing)?, arguments })
    }

    /// Parses the name of an attribute and converts it to lower case. Such names have no
    /// underscores.
    fn attribute(&mut self) -> Result<String, ParseError> {
        let name = self.accept(|kind| match kind {
            Kind::Word(word) if keyword(word).is_none() && !word.contains('_') => {
                Some(word.to_ascii_lowercase())
            }
            Kind::Word(_) | Kind::Digits(_) | Kind::Text(_) | Kind::Symbol(_) => None,
        });
        name.map_or_else(|| self.unexpected("a value or the name of an attribute"), Ok)
    }
}

fn keyword(word: &str) -> Option<&'static str> {
    KEYWORDS.into_iter().find(|keyword| keyword.eq_ignore_ascii_case(word))
}

/// Parses a literal whose token is at this position; returns `None` for other tokens.
fn literal(at: usize, kind: &Kind<'_>) -> Option<Result<Expression, ParseError>> {
    match kind {
        Kind::Digits(digits) => Some(integer(at, digits)),
        Kind::Text(text) => Some(Ok(Expression::Literal(Value::Text(Cow::Owned(text.clone()))))),
        Kind::Word(word) => {
            let is_true = keyword(word).filter(|word| ["TRUE", "FALSE"].contains(word))? == "TRUE";
            Some(Ok(Expression::Literal(Value::Boolean(is_true))))
        }
        Kind::Symbol(_) => None,
    }
}

fn integer(at: usize, text: &str) -> Result<Expression, ParseError> {
    let number = text.parse().map_err(|_| ParseError::NumberTooLarge { at })?;
    Ok(Expression::Literal(Value::Integer(number)))
}

/// Joins conditions with the logical operators between them, right-associative. Neighbouring
/// conditions with the same operator become one list.
fn joined(mut operands: Vec<Expression>, mut words: Vec<Logic>) -> Expression {
    while let Some(operator) = words.last().copied() {
        let same = words.iter().rev().take_while(|word| **word == operator).count();
        words.truncate(words.len() - same);
        let operands_of_list = operands.split_off(operands.len() - same - 1);
        operands.push(Expression::Logic { operator, operands: operands_of_list });
    }
    operands.pop().expect("there is one more operand than operators")
}
