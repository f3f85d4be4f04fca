//! A native Subscription that replaces one in another format.
//!
//! Separate because every other format is read in this way: the values that an object states become
//! native fields with their positions. The native reader then adds the defaults of the topic and of
//! the profile.

use serde_json::{Value as Json, json};

use delivery::document::findings::SourcePosition;
use delivery::document::node::Node;
use delivery::document::reader::Cursor;
use delivery::native::{API_VERSION, LeftOut, ObjectTopic, Origins, Written};
use delivery::subscription::name::SubscriptionName;
use delivery::subscription::profile::Dialect;

/// The documents of other formats, translated into native documents.
#[derive(Default)]
pub(super) struct Translated<'a> {
    /// Topics that objects of other formats define. A native document may describe the same topic.
    pub(super) topics: Vec<ObjectTopic<'a>>,
    /// The native documents, one per subscription.
    pub(super) subscriptions: Vec<Translation>,
    /// Subscriptions that could not be translated, with the reasons.
    pub(super) left_out: Vec<LeftOut>,
}

/// A native document under construction.
pub(super) struct Translation {
    /// The native document, with the positions of the original.
    pub(super) document: Node,
    /// Origins of values that have no single position, such as values from several objects or from
    /// a class.
    pub(super) origins: Origins,
}

impl From<Translation> for Written {
    fn from(Translation { document, origins }: Translation) -> Self {
        Self::translated(document, origins)
    }
}

impl Translation {
    /// Creates a Subscription without settings. Its position is that of the object at the cursor.
    pub(super) fn new(object: &Cursor<'_>) -> Self {
        let mut document = Node::empty(object.position());
        document.set("apiVersion", Node::of_json_at(&json!(API_VERSION), object.position()));
        document.set("kind", Node::of_json_at(&json!("Subscription"), object.position()));
        document.set("spec", Node::empty(object.position()));
        Self { document, origins: Origins::new() }
    }

    /// Sets the name and the profile of the subscription, both with the position `at`.
    pub(super) fn name(&mut self, name: &SubscriptionName, at: &Cursor<'_>, dialect: Dialect) {
        let SubscriptionName { topic, name } = name;
        let fields = [("namespace", &topic.namespace), ("topic", &topic.topic), ("name", name)];
        for (field, text) in fields {
            self.document.set(&format!("metadata.{field}"), at.translation(&json!(text)));
        }
        self.document.set("profile", at.translation(&json!(dialect.profile())));
    }

    /// Sets a field of `spec` to a value whose position is `at`.
    pub(super) fn set(&mut self, path: &str, value: &Json, at: &Cursor<'_>) {
        self.document.set(&format!("spec.{path}"), at.translation(value));
    }

    /// Sets a field of `spec` if there are both a value and a position.
    pub(super) fn set_some<T>(
        &mut self,
        path: &str,
        value: Option<T>,
        written: impl FnOnce(T) -> Json,
        at: Option<&Cursor<'_>>,
    ) {
        if let (Some(value), Some(at)) = (value, at) {
            self.set(path, &written(value), at);
        }
    }

    /// Sets a field of `spec` to a value that no file states, and that has no position.
    pub(super) fn imply(&mut self, path: &str, value: &Json) {
        let node = Node::of_json_at(value, SourcePosition::NOWHERE);
        self.document.set(&format!("spec.{path}"), node);
    }
}
