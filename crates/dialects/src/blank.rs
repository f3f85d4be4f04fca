//! Detects a file without any document, such as an emptied file. [`super::read`] accepts such a
//! file, because it may be one of many. A caller with only this file can report the problem.

use super::source::Source;
use delivery::document::findings::{Finding, Severity};

/// Help text that lists the expected contents of a file.
const EXPECTED: &str = "expected a document, such as apiVersion: lastmile.dev/v1 with kind: \
                        Subscription, a Knative object, or an Event Grid resource";

/// Spellings of a document that is skipped: null, or an empty list.
const NULLS: [&str; 5] = ["null", "Null", "NULL", "~", "[]"];

/// Returns an error if the text has only comments, separators and nulls; `None` for any other text.
#[must_use]
pub fn blank(file: Source<'_>) -> Option<Finding> {
    let text = file.text.trim_start_matches('\u{feff}');
    let is_null = |line: &str| NULLS.contains(&content(line));
    if !text.lines().all(|line| matches!(content(line), "" | "...") || is_null(line)) {
        return None;
    }
    let message = if text.trim().is_empty() {
        "the file is empty"
    } else if text.lines().any(is_null) {
        "the file contains no document, only null or an empty list"
    } else {
        "the file contains only comments"
    };
    Some(Finding {
        severity: Severity::Error,
        file: file.name.to_owned(),
        line: 1,
        column: 1,
        field: String::new(),
        message: message.to_owned(),
        help: Some(EXPECTED.to_owned()),
        reference: None,
    })
}

/// Returns the content of a line, without a leading separator or a trailing comment.
fn content(line: &str) -> &str {
    let line = line.trim();
    let line = line.strip_prefix("---").unwrap_or(line);
    line.split_once('#').map_or(line, |(content, _)| content).trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_without_a_document_says_whether_it_is_empty() {
        let message = |text| blank(Source { name: "f", text }).map(|finding| finding.message);
        for (text, expected) in [
            ("", Some("the file is empty")),
            (" \n\u{feff}", None),
            ("\u{feff}\n\t\n", Some("the file is empty")),
            ("---\n# later\n...\n", Some("the file contains only comments")),
            ("null\n", Some("the file contains no document, only null or an empty list")),
            (
                "--- ~ # later\n...\n---\n[]\n",
                Some("the file contains no document, only null or an empty list"),
            ),
            ("nullable\n", None),
            ("null\n---\nkind: Topic\n", None),
            ("kind: Topic\n", None),
        ] {
            assert_eq!(message(text).as_deref(), expected, "{text:?}");
        }
    }
}
