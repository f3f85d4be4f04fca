//! Where a native document states each value of a policy.
//!
//! Separate because it only looks for positions: the values are read and checked elsewhere.

use std::sync::LazyLock;

use crate::document::declaration::{self, Declaration};
use crate::document::reader::Cursor;
use crate::document::record::Record as _;
use crate::subscription::DeliverySettings;
use crate::subscription::policy::setting_name;
use crate::subscription::secret::SecretName;

use super::origins::Origins;
use super::sinks::DeadLettersAt;

/// The fields that are looked for, which are the same for every subscription.
static DECLARED: LazyLock<Vec<Declaration>> = LazyLock::new(DeliverySettings::declarations);

/// The positions of the values that documents state.
#[derive(Default)]
pub(super) struct Stated<'a> {
    /// The position of each value.
    pub(super) origins: Origins,
    /// The position of the schema.
    pub(super) schema_at: Option<Cursor<'a>>,
    /// The position of what enables batches.
    pub(super) batch_at: Option<Cursor<'a>>,
    /// The position of `onRefused` in the Subscription itself.
    pub(super) on_refused_at: Option<Cursor<'a>>,
    /// The positions of dead-letter options that not every sink and format uses.
    pub(super) dead_letters_at: DeadLettersAt<'a>,
    /// The positions of the names of secrets.
    pub(super) secrets_at: Vec<Cursor<'a>>,
}

impl<'a> Stated<'a> {
    /// The positions in a Subscription's `spec`, else in its Topic's `delivery`, else in the `defaults` beside `spec`.
    pub(super) fn of(
        spec: &Cursor<'a>,
        delivery: Option<&Cursor<'a>>,
        defaults: Option<&Cursor<'a>>,
    ) -> Self {
        let on_refused_at = spec.peek("batch.onRefused");
        // The object of a topic has no positions.
        if !spec.is_stated() {
            return Self { on_refused_at, ..Self::default() };
        }
        let documents: Vec<Cursor<'a>> =
            [Some(spec), delivery, defaults].into_iter().flatten().cloned().collect();
        let mut found = Vec::new();
        declaration::origins(&DECLARED, &documents, "", &mut found);
        let at = |path: &str| found.iter().find(|(of, _)| of == path).map(|(_, at)| at.clone());
        let reply = spec.peek("reply").filter(|at| !at.is_null());
        let stated = found.iter().map(|(path, at)| (path.as_str(), at));
        let stated = stated.chain(reply.as_ref().map(|at| ("reply", at)));
        // A key is at the position of its address, or in a document whose address does not count.
        let is_setting =
            |(path, at): &(&str, &Cursor<'_>)| at.is_stated() && !path.ends_with("reference");
        let origins = stated.filter(is_setting).map(|(path, at)| {
            // `none` stands for all of a mapping.
            let path = match path {
                "deadLetter" => "deadLetter.sink",
                "batch" => "batch.maxEvents",
                path => path,
            };
            (setting_name(path), at.location())
        });
        let batch = |of: &Cursor<'a>| of.peek("batch").filter(Cursor::is_mapping);
        let dead_letters_at = DeadLettersAt {
            // A sink that is a topic is at the name of the topic.
            sink: at("deadLetter.sink").map(|sink| sink.peek("topic").unwrap_or(sink)),
            layout: at("deadLetter.layout"),
            error_data: at("deadLetter.errorData"),
        };
        let mut secrets_at = Vec::new();
        for destination in documents.iter().filter_map(|document| document.peek("destination")) {
            add_secrets(&destination, &mut secrets_at);
        }
        Self {
            origins: origins.collect(),
            schema_at: at("destination.schema"),
            batch_at: batch(spec).or_else(|| batch(delivery?)),
            on_refused_at,
            dead_letters_at,
            secrets_at,
        }
    }
}

/// Adds where secrets are named: every text there that is the name of one.
fn add_secrets<'a>(at: &Cursor<'a>, found: &mut Vec<Cursor<'a>>) {
    if at.is_mapping() {
        at.entries().iter().flatten().for_each(|entry| add_secrets(&entry.value, found));
    } else if at.is_list() {
        at.list().iter().flatten().for_each(|of| add_secrets(of, found));
    } else if at.peek_text().is_some_and(|text| text.parse::<SecretName>().is_ok()) {
        found.push(at.clone());
    }
}
