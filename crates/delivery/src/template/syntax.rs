//! [`Tags`]: finds the tags of a template and checks its limits before it is parsed.
//!
//! This module is separate because the parser of `minijinja` recurses without a limit for each
//! consecutive `-`, `not`, `else` and `elif`. These limits bound its stack, and the stack of all
//! later steps.

use minijinja::machinery::{Span, Token, ast, parse, tokenize};
use minijinja::syntax::SyntaxConfig;

use super::error::Fault;
use super::limits::{
    BRACKETS_MAX, STATEMENTS_NESTED_MAX, TAG_TOKENS_MAX, TAGS_MAX, TEMPLATE_MAX_BYTES,
};

/// Returns true if a text contains tags, so that it is a template.
#[must_use]
pub fn has_tags(text: &str) -> bool {
    ["{{", "{%", "{#"].iter().any(|start| text.contains(start))
}

/// The text of a template, and the positions of its tags.
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
    /// Finds the tags of a template and checks the limits.
    ///
    /// # Errors
    /// The invalid part of the template, and the reason.
    pub(super) fn read(text: &'t str) -> Result<Self, (&'t str, Fault)> {
        if text.len() > TEMPLATE_MAX_BYTES {
            let reason = format!(
                "the template must have at most {TEMPLATE_MAX_BYTES} bytes, but has {}",
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

    /// Parses the template into a syntax tree.
    ///
    /// # Errors
    /// The invalid part of the template, and the reason.
    pub(super) fn parse(&self) -> Result<ast::Stmt<'t>, (&'t str, Fault)> {
        parse(self.text, "", syntax()).map_err(|error| {
            let at = self.tags.iter().find(|tag| error.line() == Some(tag.line));
            (at.map_or(self.text, |tag| self.text_of(tag)), invalid(&error))
        })
    }

    /// Returns the text of the tag that contains the start of a span.
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

/// The state of the search for tags: the tags so far, and counters for the limits.
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
            // The first token of a statement is its keyword, so counting starts at 0 for statements
            // and at 1 for outputs.
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
        limit(self.tokens, TAG_TOKENS_MAX, "words and symbols in one tag")?;
        if matches!(token, Token::ParenOpen | Token::BracketOpen | Token::BraceOpen) {
            self.brackets += 1;
        } else if matches!(token, Token::ParenClose | Token::BracketClose | Token::BraceClose) {
            self.brackets = self.brackets.saturating_sub(1);
        }
        limit(self.brackets, BRACKETS_MAX, "nested brackets")
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
        limit(self.nested, STATEMENTS_NESTED_MAX, "nested `if` and `for`")
    }
}

fn limit(count: usize, max: usize, counted: &str) -> Result<(), Fault> {
    if count <= max {
        return Ok(());
    }
    Err(Fault::new(format!("the template has more than {max} {counted}")))
}

/// Converts an error of the parser. The detail of such an error contains only text of the template.
fn invalid(error: &minijinja::Error) -> Fault {
    let detail = error.detail().unwrap_or("it cannot be parsed");
    Fault::new(format!("not a valid template: {detail}"))
}

/// Returns the default delimiters of Jinja. A line feed at the end of a template is kept, because
/// it is part of the text.
fn syntax() -> SyntaxConfig {
    let mut builder = SyntaxConfig::builder();
    builder.keep_trailing_newline(true);
    builder.build().expect("the default delimiters are valid")
}
