//! The documents of a file, and the limits of parsing.

use delivery::document::findings::{Findings, Message, Severity, SourcePosition};
use delivery::document::node::{Key, Node, Placed, Value};

/// Maximum size of a file; a thousand subscriptions need a tenth of it. The parsed tree of a file
/// is kept in memory.
pub(crate) const FILE_MAX_BYTES: usize = 4 * 1024 * 1024;
/// Maximum nesting of a document. The definitions of Kubernetes, which files may contain, have 31
/// levels.
pub(super) const DEPTH_MAX: usize = 64;

/// A problem, and its position in a file.
pub(super) type Problem = Placed<Message>;

/// The documents and the problems of one file. Empty documents are skipped. If the outermost value
/// is a list, each element is one document.
#[derive(Default)]
pub(crate) struct Parsed {
    pub(super) documents: Vec<Node>,
    pub(super) problems: Vec<Problem>,
}

impl Parsed {
    /// Creates the result for a file that cannot be parsed. The problem gets the position of the
    /// first character.
    pub(crate) fn unreadable(value: Message) -> Self {
        let position = SourcePosition { file: 0, line: 1, column: 1 };
        Self { documents: Vec::new(), problems: vec![Placed { value, position }] }
    }

    /// Adds a document, or each element of a list as one document.
    pub(super) fn add(&mut self, root: Node) {
        let is_there = |node: &Node| !matches!(node.value, Value::Null);
        match root {
            Node { value: Value::List(elements), .. } => {
                self.documents.extend(elements.into_iter().filter(is_there));
            }
            node => self.documents.extend(Some(node).filter(is_there)),
        }
    }

    /// Replaces each document that contains a text by the documents of that text, at the position
    /// of the outer document.
    pub(crate) fn with_inner(
        self,
        text_in: impl Fn(&Node) -> Option<&str>,
        parse: impl Fn(&str) -> Self,
    ) -> Self {
        let Self { documents, mut problems } = self;
        let mut all = Vec::with_capacity(documents.len());
        for document in documents {
            let Some(inner) = text_in(&document).map(&parse) else {
                all.push(document);
                continue;
            };
            let position = document.position;
            all.extend(inner.documents.into_iter().map(|node| placed_at(node, position)));
            problems
                .extend(inner.problems.into_iter().map(|problem| Placed { position, ..problem }));
        }
        Self { documents: all, problems }
    }

    /// Returns the only document of a text.
    ///
    /// # Errors
    /// Fails with the first problem, or if the text does not contain exactly one document.
    pub(crate) fn into_document(self) -> Result<Node, Message> {
        if let Some(problem) = self.problems.into_iter().next() {
            return Err(problem.value);
        }
        let [document] = <[Node; 1]>::try_from(self.documents)
            .map_err(|documents| format!("expected one value, found {}", documents.len()))?;
        Ok(document)
    }

    /// Returns the documents with the index of their file. Adds the problems to `findings`.
    pub(crate) fn into_documents(mut self, file: usize, findings: &Findings) -> Vec<Node> {
        for problem in self.problems {
            let position = SourcePosition { file, ..problem.position };
            findings.add(Severity::Error, position, "", problem.value);
        }
        self.documents.iter_mut().for_each(|node| node.put_into(file));
        self.documents
    }
}

/// Sets the positions of a value and its contents to one position.
fn placed_at(node: Node, position: SourcePosition) -> Node {
    let value = match node.value {
        Value::List(elements) => {
            Value::List(elements.into_iter().map(|element| placed_at(element, position)).collect())
        }
        Value::Map(entries) => {
            let entry =
                |(key, value): (Key, Node)| (Key { position, ..key }, placed_at(value, position));
            Value::Map(entries.into_iter().map(entry).collect())
        }
        other @ (Value::Null
        | Value::Bool(_)
        | Value::Integer(_)
        | Value::Fraction(_)
        | Value::Text(_)) => other,
    };
    Node { value, position }
}

/// Returns the message for a document that is nested too deeply, in either format.
pub(super) fn too_deep(consequence: &str) -> Message {
    Message::new(format!("nested deeper than {DEPTH_MAX} levels{consequence}"))
        .help("move this document to a separate file")
}
