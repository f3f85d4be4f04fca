//! Sorts the documents of a file into JSON and YAML.
//!
//! Separate because a document may begin in the same way in both formats: `{` begins a JSON object
//! and a YAML mapping. A document is JSON in these cases:
//! - The name of its file ends with `.json`. The name alone decides.
//! - The document begins with `{` or `[`, after white space and JSON comments, and the JSON parser
//!   accepts it.
//! - The document begins in this way and has a JSON comment. Its syntax errors are then reported,
//!   because YAML would read the comment as text.
//!
//! Everything else is YAML, including a mapping such as `{a: 1}`. A line with `---` (or `...`)
//! separates documents of both formats. All YAML documents are parsed together.

use std::collections::BTreeMap;

use super::json::{self, NotJson, begins_like_json};
use super::parsed::{Parsed, Problem};
use delivery::document::node::Placed;

/// Help text for a file named .json that is not JSON.
const NAMED_JSON: &str = "a .json file must contain JSON: rename a YAML file to .yaml";

/// The documents of a file, by format.
#[derive(Default)]
pub(crate) struct Parts {
    /// The JSON documents, and their problems.
    pub(crate) json: Parsed,
    /// The rest of the file's text. White space replaces JSON documents, so that positions stay
    /// correct.
    pub(crate) yaml: String,
    /// JSON syntax errors of documents that are then parsed as YAML.
    pub(crate) doubts: Doubts,
}

/// JSON syntax errors of documents that are probably meant to be JSON, by the document's first
/// line. Each value also has the document's last line.
#[derive(Default)]
pub(crate) struct Doubts(BTreeMap<u64, (u64, Problem)>);

impl Doubts {
    /// Returns the JSON syntax error of the document that has this YAML problem. Returns the YAML
    /// problem itself if there is no such error.
    pub(crate) fn resolve(&mut self, of_yaml: Problem) -> Problem {
        let before = self.0.range(..=of_yaml.position.line).next_back();
        let first =
            before.filter(|(_, (last, _))| of_yaml.position.line <= *last).map(|(first, _)| *first);
        let found = first.and_then(|first| self.0.remove(&first));
        found.map_or(of_yaml, |(_, problem)| problem)
    }
}

/// Sorts the documents of a file by format, and parses the JSON documents.
pub(crate) fn read(name: &str, text: &str) -> Parts {
    let is_named_json = name.to_ascii_lowercase().ends_with(".json");
    let mut parts = Parts::default();
    if (is_named_json || begins_like_json(text))
        && let Ok(root) = json::read(text, 1)
    {
        // The whole file is JSON, even with lines of --- in its comments.
        root.into_iter().for_each(|root| parts.json.add(root));
        return parts;
    }
    let (mut offset, mut line_number) = (0, 1);
    let (mut begin, mut first_line) = (0, 1);
    for line in text.split_inclusive('\n') {
        line_number += 1;
        if is_separator(line) {
            let document = text.get(begin..offset).unwrap_or_default();
            parts.add(document, first_line, is_named_json);
            parts.yaml.push_str(line);
            (begin, first_line) = (offset + line.len(), line_number);
        }
        offset += line.len();
    }
    parts.add(text.get(begin..).unwrap_or_default(), first_line, is_named_json);
    parts
}

/// True if the line separates two documents: `---` or `...`, perhaps with a comment. YAML accepts
/// all these forms. If a form were missed, a JSON document after it would be read as YAML.
fn is_separator(line: &str) -> bool {
    let rest = line.strip_prefix("---").or_else(|| line.strip_prefix("..."));
    rest.is_some_and(|rest| {
        rest.trim().is_empty() || rest.starts_with([' ', '\t']) && rest.trim().starts_with('#')
    })
}

impl Parts {
    fn add(&mut self, text: &str, first_line: u64, is_named_json: bool) {
        if !is_named_json && !begins_like_json(text) {
            self.yaml.push_str(text);
            return;
        }
        match json::read(text, first_line) {
            Ok(root) => root.into_iter().for_each(|root| self.json.add(root)),
            Err(refused) if is_named_json || has_comment(text) => {
                let NotJson { problem, .. } = *refused;
                self.json.problems.push(match begins_like_json(text) {
                    true => problem,
                    false => Placed { value: problem.value.help(NAMED_JSON), ..problem },
                });
            }
            Err(refused) => {
                let NotJson { problem, may_be_yaml } = *refused;
                self.yaml.push_str(text);
                if !may_be_yaml {
                    let lines = text.bytes().filter(|byte| *byte == b'\n').count() as u64;
                    self.doubts.0.insert(first_line, (first_line + lines, problem));
                }
                return;
            }
        }
        let blank =
            |character: char| if matches!(character, '\n' | '\r') { character } else { ' ' };
        self.yaml.extend(text.chars().map(blank));
    }
}

/// True if the text has `//` or `/*` outside of quotes in a position where a comment may begin.
/// A comment may begin a line, or follow white space, a comma, a quote or a bracket. Example:
/// `https://example.com` has no comment. YAML comments (`# …`) are skipped.
fn has_comment(text: &str) -> bool {
    let may_begin = |before: char| {
        before.is_whitespace() || matches!(before, ',' | '"' | '{' | '}' | '[' | ']')
    };
    let mut before = '\n';
    let mut rest = text.chars();
    while let Some(mut character) = rest.next() {
        match character {
            '/' if may_begin(before) && rest.as_str().starts_with(['/', '*']) => return true,
            '#' if before.is_whitespace() => {
                character = rest.find(|next| *next == '\n').unwrap_or(character);
            }
            '"' => skip_text(&mut rest, '"'),
            '\'' if may_begin(before) || before == ':' => skip_text(&mut rest, '\''),
            _ => {}
        }
        before = character;
    }
    false
}

/// Skips to the end of a text in quotes.
fn skip_text(rest: &mut std::str::Chars<'_>, quote: char) {
    while let Some(character) = rest.next() {
        match character {
            '\\' if quote == '"' => {
                rest.next();
            }
            character if character == quote => return,
            _ => {}
        }
    }
}
