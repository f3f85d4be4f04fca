//! Text → documents.
//!
//! Separate because JSON and YAML have a parser each (`json`, `yaml`): templates in JSON may have comments that YAML takes
//! for text. `parts` decides which one reads a document. Promises: no input panics, and nesting, aliases and size are
//! bounded. A syntax error in YAML ends its file, one in JSON its document; a duplicate key ends its document, because it
//! is unknown which of the two was intended.

mod json;
mod parts;
mod yaml;

use std::thread;

use delivery::document::findings::{Findings, Message, Severity, SourcePosition};
use delivery::document::node::{Node, Placed, Value};
use parts::Parts;
pub(crate) use parts::begins_like_json;

/// The largest file: a thousand subscriptions take a tenth of it. The tree of a file is held in memory.
pub(crate) const FILE_MAX_BYTES: usize = 4 * 1024 * 1024;
/// The deepest nesting of a document: definitions of Kubernetes that files also hold have 31 levels.
const DEPTH_MAX: usize = 64;
/// The stack that the parser may use. It recurses: 64 levels take 3 MiB without optimisation, and a thread has 2.
const STACK_BYTES: usize = 8 * 1024 * 1024;

/// A problem and its position in a file.
type Problem = Placed<Message>;

/// The documents of one file, and where it cannot be read; empty ones are left out, and a list at the top
/// is one document per element.
#[derive(Default)]
pub(crate) struct Parsed {
    documents: Vec<Node>,
    problems: Vec<Problem>,
}

impl Parsed {
    /// Parses the text of a file, on a thread with enough stack. A name that ends with `.json` makes it JSON.
    pub(crate) fn new(name: &str, text: &str) -> Self {
        if text.len() > FILE_MAX_BYTES {
            let message =
                format!("the file has {} bytes; at most {FILE_MAX_BYTES} are read", text.len());
            return Self::unreadable(Message::new(message).help("split it"));
        }
        let parsed = thread::scope(|scope| {
            let parser = thread::Builder::new().stack_size(STACK_BYTES);
            parser.spawn_scoped(scope, || Self::parse(name, text)).ok()?.join().ok()
        });
        parsed.unwrap_or_else(|| {
            Self::unreadable("the file could not be parsed: no thread, or no memory for it".into())
        })
    }

    /// No documents, and why.
    pub(crate) fn unreadable(value: Message) -> Self {
        let position = SourcePosition { file: 0, line: 1, column: 1 };
        Self { documents: Vec::new(), problems: vec![Placed { value, position }] }
    }

    fn parse(name: &str, text: &str) -> Self {
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

    /// Adds a document, or each element of a list as one.
    fn add(&mut self, root: Node) {
        let is_there = |node: &Node| !matches!(node.value, Value::Null);
        match root {
            Node { value: Value::List(elements), .. } => {
                self.documents.extend(elements.into_iter().filter(is_there));
            }
            node => self.documents.extend(Some(node).filter(is_there)),
        }
    }

    /// The documents, with the file's index among those that are read together; reports its problems.
    pub(crate) fn into_documents(mut self, file: usize, findings: &Findings) -> Vec<Node> {
        for problem in self.problems {
            let position = SourcePosition { file, ..problem.position };
            findings.add(Severity::Error, position, "", problem.value);
        }
        self.documents.iter_mut().for_each(|node| node.put_into(file));
        self.documents
    }
}

/// The message for a document that nests too deep, in either format.
fn too_deep(consequence: &str) -> Message {
    Message::new(format!("nested deeper than {DEPTH_MAX} levels{consequence}"))
        .help("put this document into a file of its own")
}

#[cfg(test)]
mod tests;
