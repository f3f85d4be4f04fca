//! Reads stack traces and error reports that do not begin with the cause.
//!
//! Separate because each language has its own order. Python ends with the cause, Django has the
//! cause in the second line, Elixir marks it, and Java names the innermost cause last. Pure.

use super::problem::Problem;

/// First line of a Python traceback; the last line has the error.
const PYTHON: &str = "Traceback (most recent call last)";
/// Beginning of a line in Django's plain-text error report.
const DJANGO: &str = "\nRequest Method: ";
/// Mark before an Elixir exception: `** (DBConnection.ConnectionError) connection not available …`.
const ELIXIR: &str = "\n    ** (";
/// Beginning of each cause in a Java stack trace.
const JAVA: &str = "\nCaused by: ";

/// Returns the cause in a stack trace or error report; `None` for any other text.
pub(super) fn read(text: &str) -> Option<Problem> {
    python(text).or_else(|| django(text)).or_else(|| elixir(text)).or_else(|| java(text))
}

fn python(text: &str) -> Option<Problem> {
    let last = || text.trim_end().lines().next_back().map(str::trim);
    text.starts_with(PYTHON).then(last).flatten().map(Problem::text)
}

/// Reads Django's report: `IntegrityError at /hooks/`, followed by the message.
fn django(text: &str) -> Option<Problem> {
    let mut lines = text.lines();
    let is_report = lines.next()?.contains(" at /") && text.contains(DJANGO);
    lines.next().filter(|line| is_report && !line.is_empty()).map(Problem::text)
}

fn elixir(text: &str) -> Option<Problem> {
    let (_, exception) = text.split_once(ELIXIR)?;
    let (class, message) = exception.lines().next()?.split_once(") ")?;
    Some(Problem::text(&format!("{class}: {message}")))
}

fn java(text: &str) -> Option<Problem> {
    let (_, cause) = text.rsplit_once(JAVA)?;
    let lines = [text, cause].map(|part| part.lines().next().unwrap_or_default());
    Some(Problem { texts: lines.map(ToOwned::to_owned).to_vec(), ..Problem::default() })
}
