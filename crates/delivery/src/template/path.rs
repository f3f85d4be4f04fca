//! [`PathTemplate`]: a URL with expressions in its path.
//!
//! This module is separate because a value must not redirect a request. A value can change neither
//! the host nor the segments that the author wrote. The rendered URL is parsed and compared with
//! the template.

use std::sync::Arc;

use url::Url;

use super::budget::{Bounded, WRITTEN};
use super::error::{Fault, TemplateError};
use super::evaluate::render;
use super::expression::{Node, Variable};
use super::limits::URL_MAX_BYTES;
use super::output::Encoding;
use super::program::Program;
use super::values::Values;

/// A compiled URL with expressions in its path. Clones share the compiled form.
#[derive(Debug, Clone)]
pub struct PathTemplate {
    program: Arc<Program>,
    base: Url,
}

impl PathTemplate {
    /// Compiles an `http` or `https` URL. `place` is the path of its field, such as
    /// `spec.destination.url`.
    ///
    /// # Errors
    ///
    /// Fails if an expression is outside the path or invalid, or if the text is not a URL.
    pub fn compile(url: &str, place: &str) -> Result<Self, TemplateError> {
        // No error quotes the URL, because it may contain credentials.
        let program = Program::compile(url, place).map_err(TemplateError::without_expression)?;
        let outputs = program.nodes.iter().filter(|node| matches!(node, Node::Output(_))).count();
        let is_plain = |sign: &str| url.matches(sign).count() == outputs;
        if !is_plain("{{") || !is_plain("}}") || url.contains("{#") {
            let reason = "a URL cannot contain `{# #}`, or `{{` or `}}` within an expression";
            return Err(TemplateError::new(place, "", reason));
        }
        let failed = |fault: Fault| TemplateError::new(place, "", fault.0);
        let base = base(&program.nodes).map_err(failed)?;
        let template = Self { program: program.into(), base };
        let dots = |_| Fault::new("the path of a URL cannot have the segments `.` and `..`");
        template.checked(&sample(&template.program.nodes)).map_err(dots).map_err(failed)?;
        Ok(template)
    }

    /// Renders the URL. Each expression fills a whole segment of the path, or a part of a segment.
    ///
    /// # Errors
    ///
    /// Fails if an expression cannot be rendered, if its value is empty, or if a rendered segment
    /// is `.` or `..`. A URL parser would remove such segments.
    pub fn render(&self, values: &Values) -> Result<Url, TemplateError> {
        let mut out = Bounded::new(URL_MAX_BYTES, WRITTEN, values.budget());
        render(&self.program, values, Encoding::Path, &mut out).map_err(|mut error| {
            if !error.expression.starts_with("{{") {
                error.expression.clear();
            }
            error
        })?;
        self.checked(&out.finish())
            .map_err(|fault| TemplateError::new(&self.program.place, "", fault.0))
    }

    /// Returns the names of the secrets in calls of `secret` and `hmac`, sorted and without
    /// duplicates.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        self.program.secrets.iter().map(|name| &**name)
    }

    /// Returns true if an expression uses the variable `event`, which does not exist if the
    /// subscription batches.
    #[must_use]
    pub fn reads_event(&self) -> bool {
        self.program.variables.contains(&Variable::Event)
    }

    /// Parses a rendered URL. Fails unless the URL has the origin and the credentials of the
    /// template. Also fails if parsing would remove or add a path segment.
    fn checked(&self, rendered: &str) -> Result<Url, Fault> {
        let changed =
            || Fault::new("the value would change the path: a segment cannot be `.` or `..`");
        let url = Url::parse(rendered).map_err(|_| Fault::new("the result is not a URL"))?;
        let authority = |url: &Url| {
            (url.origin(), url.username().to_owned(), url.password().map(str::to_owned))
        };
        if authority(&url) != authority(&self.base) {
            return Err(changed());
        }
        let path = path_of(rendered).unwrap_or_default();
        if path.split('/').any(is_dots) || path.split('/').count() != url.path().split('/').count()
        {
            return Err(changed());
        }
        Ok(url)
    }
}

/// Returns a URL with the origin and the credentials of the template, and the path `/`. Fails if an
/// expression is outside the path.
fn base(nodes: &[Node]) -> Result<Url, Fault> {
    let only_path =
        || Fault::new("expressions are allowed only in the path of a URL, after `https://host/`");
    let mut is_path = false;
    let mut is_after_path = false;
    let mut first = None;
    for node in nodes {
        match node {
            Node::Text(text) => {
                if text
                    .chars()
                    .any(|character| character.is_control() || matches!(character, ' ' | '\\'))
                {
                    return Err(Fault::new(
                        "a URL cannot contain spaces, control characters or `\\`",
                    ));
                }
                if first.is_none() {
                    first = Some(&**text);
                    is_path = path_of(text).is_some_and(|path| !path.is_empty());
                }
                is_after_path |= text.contains(['?', '#']);
            }
            Node::Output(_) if is_path && !is_after_path => {}
            Node::Output(_) => return Err(only_path()),
            Node::If { .. } | Node::For { .. } => {
                return Err(Fault::new("a URL can contain expressions, but not `if` or `for`"));
            }
        }
    }
    let first = first.unwrap_or_default();
    let parsed = path_of(first).and_then(|_| Url::parse(first).ok());
    let mut parsed = parsed
        .filter(Url::has_host)
        .ok_or_else(|| Fault::new("a URL must begin with http:// or https:// and a host"))?;
    parsed.set_path("/");
    parsed.set_query(None);
    parsed.set_fragment(None);
    Ok(parsed)
}

/// Returns the URL with a harmless segment in place of each expression, for checking.
fn sample(nodes: &[Node]) -> String {
    let parts = nodes.iter().map(|node| match node {
        Node::Text(text) => text,
        Node::Output(_) | Node::If { .. } | Node::For { .. } => "x",
    });
    parts.collect()
}

/// Returns the path of an `http` or `https` URL, from the end of the host up to the query. Returns
/// `None` for other text.
fn path_of(url: &str) -> Option<&str> {
    let (scheme, rest) = url.split_once("://")?;
    let is_http = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, rest) = rest.split_at(end);
    let path = rest.split(['?', '#']).next();
    path.filter(|_| is_http && !authority.is_empty())
}

/// Returns true if a URL parser would remove the segment: it is `.` or `..`, perhaps with `%2e` as
/// a dot.
fn is_dots(segment: &str) -> bool {
    let plain = segment.to_ascii_lowercase().replace("%2e", ".");
    plain == "." || plain == ".."
}
