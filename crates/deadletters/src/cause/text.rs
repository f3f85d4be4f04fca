//! Finds the cause in responses that are not JSON: plain text, web pages and XML.
//!
//! Separate because JSON names the member that contains the cause, but here its position or its
//! markup reveals it. Pure.

use super::problem::Problem;
use super::trace;

/// Pairs of marks around the cause in a web page, best first. Several are necessary, because many
/// titles only repeat the status.
const PAGE_PLACES: [(&str, &str); 9] = [
    ("<pre class=\"exception_value\"", "</pre"), // Django
    ("<title", "</title"),
    ("<h1", "</h1"),
    ("<h2", "</h2"),
    ("<b>message</b>", "</p"),        // Tomcat
    ("<th>message:</th>", "</td"),    // Jetty
    ("<pre", "</pre"),                // Express
    ("reason: <strong>", "</strong"), // Apache: the first paragraph is the same for every reason
    ("<p", "</p"),
];
/// Local names of XML elements that contain a code.
const XML_CODES: [&str; 2] = ["code", "faultcode"];
const XML_TEXTS: [&str; 8] =
    ["message", "faultstring", "detail", "title", "text", "errormessage", "description", "error"];
const ENTITIES: [(&str, &str); 9] = [
    ("&nbsp;", " "),
    ("&quot;", "\""),
    ("&#34;", "\""),
    ("&#39;", "'"),
    ("&#x27;", "'"),
    ("&apos;", "'"),
    ("&lt;", "<"),
    ("&gt;", ">"),
    ("&amp;", "&"),
];

/// Returns the first line that is not empty.
pub(super) fn first_line(text: &str) -> Option<String> {
    text.lines().map(str::trim).find(|line| !line.is_empty()).map(ToOwned::to_owned)
}

/// Returns the part of a plain text that states the cause.
pub(super) fn plain(text: &str) -> Option<Problem> {
    let text = text.trim();
    trace::read(text).or_else(|| (!text.is_empty()).then(|| Problem::text(text)))
}

/// Returns the cause in a web page or in XML.
pub(super) fn marked(body: &str, is_generic: impl Fn(&str) -> bool) -> Option<Problem> {
    // Lower-casing ASCII keeps all offsets.
    let lower = body.to_ascii_lowercase();
    let is_page = lower.contains("<html") || lower.contains("<!doctype html");
    let found = if is_page { None } else { xml(body, &lower) };
    found
        .or_else(|| page(body, &lower, is_generic))
        .or_else(|| first_line(&without_tags(body)).map(|line| Problem::text(&line)))
}

fn page(body: &str, lower: &str, is_generic: impl Fn(&str) -> bool) -> Option<Problem> {
    let found = PAGE_PLACES.iter().filter_map(|(open, close)| between(body, lower, open, close));
    let texts = found.map(|text| without_status(without_host(&text), &is_generic));
    // HAProxy puts its sentence directly into the body, without an element.
    let sentence = between(body, lower, "</h1", "</body").filter(|text| text.ends_with('.'));
    let mut texts = texts.chain(sentence).filter(|text| !text.is_empty());
    let first = texts.next()?;
    let is_telling = |text: &String| !is_generic(text) && !is_of_framework(text);
    let telling = std::iter::once(first.clone()).chain(texts).find(is_telling);
    let texts = [telling.unwrap_or(first)].into_iter().chain(root_cause(body, lower)).collect();
    Some(Problem { texts, ..Problem::default() })
}

/// Returns the innermost exception in an error page of Tomcat.
fn root_cause(body: &str, lower: &str) -> Option<String> {
    let at = lower.rfind("<b>root cause</b>")?;
    between(body.get(at..)?, lower.get(at..)?, "<pre", "</pre")
}

/// True if a framework uses this title for all its error pages.
fn is_of_framework(title: &str) -> bool {
    let title = title.to_ascii_lowercase();
    matches!(title.as_str(), "error" | "proxy error")
        || title.contains("exception caught")
        || title.starts_with("whitelabel")
}

/// Removes the host from a title: `billing.example.com | 522: Connection timed out` becomes `522:
/// Connection timed out`.
fn without_host(title: &str) -> &str {
    let is_host = |text: &str| text.contains('.') && !text.contains(' ');
    title.split_once(" | ").filter(|(site, _)| is_host(site)).map_or(title, |(_, rest)| rest)
}

/// Removes the status from the beginning of a title: `HTTP Status 404 – Not Found` becomes `Not
/// Found`. Any other number is a code and is kept.
fn without_status(title: &str, is_generic: &impl Fn(&str) -> bool) -> String {
    let words = ["HTTP ERROR ", "HTTP Status ", "Error "];
    let rest = words.iter().find_map(|word| title.strip_prefix(word)).unwrap_or(title);
    let after = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    let number = rest.strip_suffix(after).unwrap_or_default();
    let is_status = number.len() == 3 && is_generic(number) && after.starts_with([' ', ':', '-']);
    let after = after.trim_start_matches([' ', '-', '–', '—', ':', '|']);
    if is_status && !after.is_empty() { after.to_owned() } else { title.to_owned() }
}

/// Returns the first line between the marks `open` and `close`.
fn between(body: &str, lower: &str, open: &str, close: &str) -> Option<String> {
    let begins = lower.match_indices(open).find(|(at, _)| {
        // `<p` must not match `<pre`.
        let after = lower.get(at + open.len()..).and_then(|rest| rest.chars().next());
        open.ends_with('>') || after.is_some_and(|c| c == '>' || c.is_whitespace())
    })?;
    let at = begins.0 + open.len();
    let at = if open.ends_with('>') { at } else { at + lower.get(at..)?.find('>')? + 1 };
    let rest = lower.get(at..)?;
    let end =
        [rest.find(close), rest.find("<br")].into_iter().flatten().min().unwrap_or(rest.len());
    first_line(&without_tags(body.get(at..at + end)?))
}

fn xml(body: &str, lower: &str) -> Option<Problem> {
    let found = |names: &[&str]| names.iter().find_map(|name| element(body, lower, name));
    let code = found(&XML_CODES);
    let texts: Vec<String> = found(&XML_TEXTS).into_iter().collect();
    let problem = Problem { code, texts, ..Problem::default() };
    (problem.code.is_some() || !problem.texts.is_empty()).then_some(problem)
}

/// Returns the text of the first XML element with this name, in any namespace.
fn element(body: &str, lower: &str, name: &str) -> Option<String> {
    lower.match_indices(name).find_map(|(at, _)| {
        let before = lower.get(..at)?;
        let prefix = before.strip_suffix(':').unwrap_or(before);
        let is_prefix = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        let is_tag = before.ends_with('<')
            || prefix.len() < before.len() && prefix.trim_end_matches(is_prefix).ends_with('<');
        let after = lower.get(at + name.len()..)?;
        if !is_tag || !after.starts_with(['>', ' ']) {
            return None;
        }
        let from = at + name.len() + after.find('>')? + 1;
        let rest = body.get(from..)?;
        let text = rest.get(..rest.find('<').unwrap_or(rest.len()))?;
        first_line(&decoded(text))
    })
}

fn without_tags(body: &str) -> String {
    let mut is_tag = false;
    let text = body.chars().filter_map(|c| {
        is_tag = (is_tag || c == '<') && c != '>';
        (!is_tag).then_some(if c == '>' { ' ' } else { c })
    });
    decoded(&text.collect::<String>())
}

fn decoded(text: &str) -> String {
    ENTITIES
        .iter()
        .fold(text.to_owned(), |text, (entity, character)| text.replace(entity, character))
}
