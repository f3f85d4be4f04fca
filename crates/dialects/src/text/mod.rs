//! Parses text into documents.
//!
//! Separate because JSON and YAML have separate parsers (`json`, `yaml`): templates in JSON may
//! have comments that YAML reads as text. `parts` selects the parser of each document. No input
//! causes a panic, and nesting, aliases and size are limited. After a syntax error in YAML, the
//! rest of the YAML in the file is not read. A JSON document with a syntax error is omitted. A
//! document with a duplicate key is omitted too, because the intended value is unknown.

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

/// Stack size of the parser, which recurses. Without optimisation 64 levels need 3 MiB, and the
/// default of a thread is 2 MiB.
const STACK_BYTES: usize = 8 * 1024 * 1024;

/// Parses a file on a thread with enough stack. A file whose name ends with `.json` is JSON.
pub(crate) fn parse(name: &str, text: &str) -> Parsed {
    if text.len() > FILE_MAX_BYTES {
        let message =
            format!("the file has {} bytes; the limit is {FILE_MAX_BYTES} bytes", text.len());
        return Parsed::unreadable(Message::new(message).help("split the file"));
    }
    let parsed = thread::scope(|scope| {
        let parser = thread::Builder::new().stack_size(STACK_BYTES);
        parser.spawn_scoped(scope, || parse_here(name, text)).ok()?.join().ok()
    });
    parsed.unwrap_or_else(|| {
        Parsed::unreadable(
            "the file could not be parsed: the system could not start a thread, or the parser failed"
                .into(),
        )
    })
}

fn parse_here(name: &str, text: &str) -> Parsed {
    // Remove the byte order mark, because neither parser counts it as a character.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let Parts { json: mut parsed, yaml, mut doubts } = parts::read(name, text);
    let of_yaml = yaml::read(&yaml);
    let problems = of_yaml.problems.into_iter().map(|problem| doubts.resolve(problem));
    parsed.problems.extend(problems);
    parsed.documents.extend(of_yaml.documents);
    // Sort the documents, because both formats may alternate in a file.
    parsed.documents.sort_by_key(|node| node.position);
    parsed
}

#[cfg(test)]
mod tests;
