//! Text → documents.
//!
//! Separate because JSON and YAML have a parser each (`json`, `yaml`): templates in JSON may have comments that YAML takes
//! for text. `parts` decides which one reads a document. Promises: no input panics, and nesting, aliases and size are
//! bounded. A syntax error in YAML ends its file, one in JSON its document; a duplicate key ends its document, because it
//! is unknown which of the two was intended.

mod json;
mod parsed;
mod parts;
mod yaml;

use std::thread;

use delivery::document::findings::Message;
pub(crate) use json::begins_like_json;
use parsed::FILE_MAX_BYTES;
pub(crate) use parsed::Parsed;
use parts::Parts;

/// The stack that the parser may use. It recurses: 64 levels take 3 MiB without optimisation, and a thread has 2.
const STACK_BYTES: usize = 8 * 1024 * 1024;

/// Parses the text of a file, on a thread with enough stack. A name that ends with `.json` makes it JSON.
pub(crate) fn parse(name: &str, text: &str) -> Parsed {
    if text.len() > FILE_MAX_BYTES {
        let message =
            format!("the file has {} bytes; at most {FILE_MAX_BYTES} are read", text.len());
        return Parsed::unreadable(Message::new(message).help("split it"));
    }
    let parsed = thread::scope(|scope| {
        let parser = thread::Builder::new().stack_size(STACK_BYTES);
        parser.spawn_scoped(scope, || parse_here(name, text)).ok()?.join().ok()
    });
    parsed.unwrap_or_else(|| {
        Parsed::unreadable("the file could not be parsed: no thread, or no memory for it".into())
    })
}

fn parse_here(name: &str, text: &str) -> Parsed {
    // Neither parser counts a byte order mark as a character.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let Parts { json: mut parsed, yaml, mut doubts } = parts::read(name, text);
    let of_yaml = yaml::read(&yaml);
    let problems = of_yaml.problems.into_iter().map(|problem| doubts.resolve(problem));
    parsed.problems.extend(problems);
    parsed.documents.extend(of_yaml.documents);
    // Both are in the order of the file, which documents of the two formats may share.
    parsed.documents.sort_by_key(|node| node.position);
    parsed
}

#[cfg(test)]
mod tests;
