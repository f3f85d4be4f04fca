//! A file without any document, such as one that an editor has emptied. For [`super::read`] it is no error, since it is
//! one of many files, or asked for; whoever has only this one can say what is wrong.

use super::source::Source;
use delivery::document::findings::{Finding, Severity};

/// The right spelling or value.
const EXPECTED: &str = "a document is expected, such as one of apiVersion: lastmile.dev/v1 and kind: Subscription, \
                        a Knative object, or an Event Grid resource";

/// What is wrong with a text that has no document, only comments and separators; `None` for any other.
#[must_use]
pub fn blank(file: Source<'_>) -> Option<Finding> {
    let text = file.text.trim_start_matches('\u{feff}');
    let says_nothing = |line: &str| {
        let line = line.trim();
        line.is_empty() || line.starts_with('#') || matches!(line, "---" | "...")
    };
    if !text.lines().all(says_nothing) {
        return None;
    }
    let is_empty = text.trim().is_empty();
    let message = if is_empty { "the file is empty" } else { "there is nothing but comments here" };
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
            ("---\n# later\n...\n", Some("there is nothing but comments here")),
            ("kind: Topic\n", None),
        ] {
            assert_eq!(message(text).as_deref(), expected, "{text:?}");
        }
    }
}
