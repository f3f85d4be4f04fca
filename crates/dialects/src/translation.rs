//! A Subscription in the native form that is written in place of one in another format.
//!
//! Separate because every other format is read like this: what an object states becomes native fields, each with the
//! position of what states it. The native reader then adds the defaults of the topic and of the profile.

use serde_json::{Value as Json, json};

use delivery::document::findings::SourcePosition;
use delivery::document::node::Node;
use delivery::document::reader::Cursor;
use delivery::native::{API_VERSION, LeftOut, ObjectTopic, Origins, Written};
use delivery::subscription::name::SubscriptionName;
use delivery::subscription::profile::Dialect;

/// What documents of other formats are in the native form.
#[derive(Default)]
pub(super) struct Translated<'a> {
    /// The topics that objects define. A native document may describe one as well.
    pub(super) topics: Vec<ObjectTopic<'a>>,
    /// One native document for each.
    pub(super) subscriptions: Vec<Translation>,
    /// The subscriptions that could not be translated.
    pub(super) left_out: Vec<LeftOut>,
}

/// A native document while it is written.
pub(super) struct Translation {
    /// Values with the positions of the original.
    pub(super) document: Node,
    /// Where values come from, if no position says it: parts of several objects, or a class.
    pub(super) origins: Origins,
}

impl From<Translation> for Written {
    fn from(Translation { document, origins }: Translation) -> Self {
        Self::translated(document, origins)
    }
}

impl Translation {
    /// A Subscription without any settings, written in place of the object at the cursor.
    pub(super) fn new(of: &Cursor<'_>) -> Self {
        let mut document = Node::empty(of.position());
        document.set("apiVersion", Node::of_json_at(&json!(API_VERSION), of.position()));
        document.set("kind", Node::of_json_at(&json!("Subscription"), of.position()));
        document.set("spec", Node::empty(of.position()));
        Self { document, origins: Origins::new() }
    }

    /// Sets the name, which is written at the cursor, and the profile.
    pub(super) fn name(&mut self, name: &SubscriptionName, at: &Cursor<'_>, dialect: Dialect) {
        let SubscriptionName { topic, name } = name;
        let fields = [("namespace", &topic.namespace), ("topic", &topic.topic), ("name", name)];
        for (field, text) in fields {
            self.document.set(&format!("metadata.{field}"), at.translation(&json!(text)));
        }
        self.document.set("profile", at.translation(&json!(dialect.profile())));
    }

    /// Sets a field of `spec` to a value that is written at the cursor.
    pub(super) fn set(&mut self, path: &str, value: &Json, at: &Cursor<'_>) {
        self.document.set(&format!("spec.{path}"), at.translation(value));
    }

    /// The same if both are there.
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

    /// Sets a field of `spec` to a value that no file states.
    pub(super) fn imply(&mut self, path: &str, value: &Json) {
        let node = Node::of_json_at(value, SourcePosition::NOWHERE);
        self.document.set(&format!("spec.{path}"), node);
    }
}
