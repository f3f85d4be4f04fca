//! The tags of a template, counted before the parser sees them.
//!
//! Separate because the parser of `minijinja` calls itself without a limit for each `-`, `not`, `else` and `elif` in a row.
//! These limits keep its stack, and that of everything that follows, small.

use minijinja::machinery::{Span, Token, ast, parse, tokenize};
use minijinja::syntax::SyntaxConfig;

use super::error::Fault;
use super::limits::{
    BRACKETS_MAX, STATEMENTS_NESTED_MAX, TAG_TOKENS_MAX, TAGS_MAX, TEMPLATE_MAX_BYTES,
};

/// Returns true if a text has tags.
#[must_use]
pub fn has_tags(text: &str) -> bool {
    ["{{", "{%", "{#"].iter().any(|start| text.contains(start))
}

/// A template with its tags.
pub(super) struct Tags<'t> {
    text: &'t str,
    tags: Vec<Tag>,
}

struct Tag {
    start: usize,
    end: usize,
    line: usize,
}

impl<'t> Tags<'t> {
    /// Finds the tags.
    ///
    /// # Errors
    /// The part of the template that is wrong, and why.
    pub(super) fn read(text: &'t str) -> Result<Self, (&'t str, Fault)> {
        if text.len() > TEMPLATE_MAX_BYTES {
            let reason = format!(
                "a template has at most {TEMPLATE_MAX_BYTES} bytes, this has {}",
                text.len()
            );
            return Err((text, Fault::new(reason)));
        }
        let mut scan =
            Scan { tags: Self { text, tags: Vec::new() }, tokens: 0, brackets: 0, nested: 0 };
        for token in tokenize(text, false, syntax()) {
            let read = token.map_err(|error| invalid(&error));
            let checked = read.and_then(|(token, span)| scan.add(&token, span));
            if let Err(fault) = checked {
                return Err((scan.tags.last(), fault));
            }
        }
        Ok(scan.tags)
    }

    /// Parses the template.
    ///
    /// # Errors
    /// The part of the template that is wrong, and why.
    pub(super) fn parse(&self) -> Result<ast::Stmt<'t>, (&'t str, Fault)> {
        parse(self.text, "", syntax()).map_err(|error| {
            let at = self.tags.iter().find(|tag| error.line() == Some(tag.line));
            (at.map_or(self.text, |tag| self.text_of(tag)), invalid(&error))
        })
    }

    /// The tag that contains the start of a span.
    pub(super) fn at(&self, span: Span) -> &'t str {
        let start = usize::try_from(span.start_offset).unwrap_or_default();
        let tag = self.tags.iter().rev().find(|tag| tag.start <= start);
        tag.map_or(self.text, |tag| self.text_of(tag))
    }

    fn last(&self) -> &'t str {
        self.tags.last().map_or(self.text, |tag| self.text_of(tag))
    }

    fn text_of(&self, tag: &Tag) -> &'t str {
        self.text.get(tag.start..tag.end).unwrap_or(self.text)
    }
}

/// The state of counting.
struct Scan<'t> {
    tags: Tags<'t>,
    tokens: usize,
    brackets: usize,
    nested: usize,
}

impl Scan<'_> {
    fn add(&mut self, token: &Token<'_>, span: Span) -> Result<(), Fault> {
        let offset = |offset: u32| usize::try_from(offset).unwrap_or_default();
        if matches!(token, Token::VariableStart | Token::BlockStart) {
            let (start, end) = (offset(span.start_offset), self.tags.text.len());
            self.tags.tags.push(Tag { start, end, line: span.start_line.into() });
            // A statement's first token is its keyword.
            (self.tokens, self.brackets) = (usize::from(matches!(token, Token::VariableStart)), 0);
            return limit(self.tags.tags.len(), TAGS_MAX, "tags");
        }
        if matches!(token, Token::VariableEnd | Token::BlockEnd) {
            if let Some(tag) = self.tags.tags.last_mut() {
                tag.end = offset(span.end_offset);
            }
            return Ok(());
        }
        if matches!(token, Token::TemplateData(_)) {
            return Ok(());
        }
        if let (0, Token::Ident(keyword)) = (self.tokens, token) {
            self.statement(keyword)?;
        }
        self.tokens += 1;
        limit(self.tokens, TAG_TOKENS_MAX, "words and signs in one tag")?;
        if matches!(token, Token::ParenOpen | Token::BracketOpen | Token::BraceOpen) {
            self.brackets += 1;
        } else if matches!(token, Token::ParenClose | Token::BracketClose | Token::BraceClose) {
            self.brackets = self.brackets.saturating_sub(1);
        }
        limit(self.brackets, BRACKETS_MAX, "brackets inside each other")
    }

    fn statement(&mut self, keyword: &str) -> Result<(), Fault> {
        match keyword {
            "if" | "for" => self.nested += 1,
            "endif" | "endfor" => self.nested = self.nested.saturating_sub(1),
            "elif" | "else" => {}
            other => {
                let reason =
                    format!("`{other}` is not supported; the only statements are `if` and `for`");
                return Err(Fault::new(reason));
            }
        }
        limit(self.nested, STATEMENTS_NESTED_MAX, "`if` and `for` inside each other")
    }
}

fn limit(count: usize, max: usize, counted: &str) -> Result<(), Fault> {
    if count <= max {
        return Ok(());
    }
    Err(Fault::new(format!("more than {max} {counted}")))
}

/// The parser's reason contains only signs of the template.
fn invalid(error: &minijinja::Error) -> Fault {
    let detail = error.detail().unwrap_or("it cannot be read");
    Fault::new(format!("not a valid template: {detail}"))
}

/// Jinja's own delimiters. A line feed at the end is kept, as all other text is.
fn syntax() -> SyntaxConfig {
    let mut builder = SyntaxConfig::builder();
    builder.keep_trailing_newline(true);
    builder.build().expect("the default delimiters are valid")
}
