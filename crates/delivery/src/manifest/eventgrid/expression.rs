//! The syntax of template expressions, such as `[format('{0}-events', parameters('name'))]`.
//!
//! Separate from their evaluation, which needs the template. Length and nesting are bounded, so no text
//! exhausts the stack.

/// The longest expression that is read, in bytes.
const LENGTH_MAX: usize = 8 * 1024;
/// The deepest nesting of calls.
const DEPTH_MAX: usize = 16;

/// An expression.
#[derive(Debug, PartialEq)]
pub(super) enum Expression {
    /// Text in single quotes.
    Text(String),
    /// A whole number.
    Integer(i64),
    /// A call of a function.
    Call {
        /// Its name as written.
        name: String,
        /// Its arguments.
        arguments: Vec<Expression>,
    },
    /// A member of a mapping, by its name, or of a list, by its index.
    Member {
        /// The mapping or list.
        of: Box<Expression>,
        /// The name or index.
        key: Box<Expression>,
    },
}

/// What a text of a template is.
pub(super) enum Kind<'t> {
    /// Text that begins with a bracket: two of them stand for one.
    Escaped(&'t str),
    /// An expression, without its brackets.
    Expression(&'t str),
    /// Any other text.
    Plain,
}

/// Tells text from expressions.
pub(super) fn kind(text: &str) -> Kind<'_> {
    match text.strip_prefix('[') {
        Some(escaped) if escaped.starts_with('[') => Kind::Escaped(escaped),
        Some(rest) => rest.strip_suffix(']').map_or(Kind::Plain, Kind::Expression),
        None => Kind::Plain,
    }
}

/// The expression of this text, which is without its brackets; `None` if it is none.
pub(super) fn parse(text: &str) -> Option<Expression> {
    let mut parser = Parser { rest: text.get(..).filter(|text| text.len() <= LENGTH_MAX)? };
    let expression = parser.expression(0)?;
    parser.skip_spaces();
    parser.rest.is_empty().then_some(expression)
}

/// The text that is not read yet.
struct Parser<'t> {
    rest: &'t str,
}

impl<'t> Parser<'t> {
    fn skip_spaces(&mut self) {
        self.rest = self.rest.trim_start();
    }

    /// Skips this character, after spaces; false if there is another one.
    fn skip(&mut self, expected: char) -> bool {
        self.skip_spaces();
        let rest = self.rest.strip_prefix(expected);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// The longest beginning of which every character is allowed; `None` if it is empty.
    fn word(&mut self, is_allowed: fn(char) -> bool) -> Option<&'t str> {
        let end = self.rest.find(|c| !is_allowed(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at_checked(end)?;
        self.rest = rest;
        (!word.is_empty()).then_some(word)
    }

    fn expression(&mut self, depth: usize) -> Option<Expression> {
        if depth > DEPTH_MAX {
            return None;
        }
        self.skip_spaces();
        let mut expression = match self.rest.chars().next()? {
            '\'' => Expression::Text(self.text()?),
            '0'..='9' | '-' => {
                let digits = self.word(|c| c.is_ascii_digit() || c == '-')?;
                Expression::Integer(digits.parse().ok()?)
            }
            _ => self.call(depth)?,
        };
        loop {
            let key = if self.skip('.') {
                let name = self.word(|c| c.is_ascii_alphanumeric() || c == '_')?;
                Expression::Text(name.to_owned())
            } else if self.skip('[') {
                let key = self.expression(depth + 1)?;
                self.skip(']').then_some(key)?
            } else {
                return Some(expression);
            };
            expression = Expression::Member { of: Box::new(expression), key: Box::new(key) };
        }
    }

    /// Text in single quotes, of which two stand for one.
    fn text(&mut self) -> Option<String> {
        let mut text = String::new();
        while let Some((part, rest)) =
            self.rest.strip_prefix('\'').and_then(|of| of.split_once('\''))
        {
            text.push_str(part);
            self.rest = rest;
            if !rest.starts_with('\'') {
                return Some(text);
            }
            text.push('\'');
        }
        None
    }

    fn call(&mut self, depth: usize) -> Option<Expression> {
        let name = self.word(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.'))?.to_owned();
        let mut arguments = Vec::new();
        if !self.skip('(') {
            return None;
        }
        while !self.skip(')') {
            if !arguments.is_empty() && !self.skip(',') {
                return None;
            }
            arguments.push(self.expression(depth + 1)?);
        }
        Some(Expression::Call { name, arguments })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(name: &str, arguments: Vec<Expression>) -> Expression {
        Expression::Call { name: name.to_owned(), arguments }
    }

    fn text(text: &str) -> Expression {
        Expression::Text(text.to_owned())
    }

    #[test]
    fn calls_texts_numbers_and_members_are_read() {
        let member = |of, key| Expression::Member { of: Box::new(of), key: Box::new(key) };
        for (written, expected) in [
            ("'it''s'", text("it's")),
            ("''", text("")),
            (" parameters( 'a' ) ", call("parameters", vec![text("a")])),
            (
                "f(1, 'x', g())",
                call("f", vec![Expression::Integer(1), text("x"), call("g", vec![])]),
            ),
            (
                "v('a').b[-1]",
                member(member(call("v", vec![text("a")]), text("b")), Expression::Integer(-1)),
            ),
            ("own.name('a')", call("own.name", vec![text("a")])),
        ] {
            assert_eq!(parse(written), Some(expected), "{written}");
        }
    }

    #[test]
    fn what_is_no_expression_is_none() {
        let deep = format!("{}1{}", "f(".repeat(17), ")".repeat(17));
        let long = format!("'{}'", "a".repeat(LENGTH_MAX));
        for written in [
            "", "'a", "f(", "f(1", "f(1 2)", "f(,1)", "a", "f()x", "f().", "f()[1", "-", "1-",
            "é()", &deep, &long,
        ] {
            assert_eq!(parse(written), None, "{written}");
        }
        assert!(parse(&format!("{}1{}", "f(".repeat(16), ")".repeat(16))).is_some());
    }
}
