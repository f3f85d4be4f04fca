//! Finds the position of each stated value of a subscription in native documents.
//!
//! This module is separate because it only finds positions. Other modules read and check the
//! values.

use std::sync::LazyLock;

use crate::document::declaration::{self, Declaration};
use crate::document::reader::Cursor;
use crate::document::record::Record as _;
use crate::subscription::DeliverySettings;
use crate::subscription::policy::setting_name;
use crate::subscription::secret::SecretName;

use super::origins::Origins;
use super::sinks::DeadLettersAt;

/// Caches the field declarations of [`DeliverySettings`], which never change.
static DECLARED: LazyLock<Vec<Declaration>> = LazyLock::new(DeliverySettings::declarations);

#[derive(Default)]
pub(super) struct Stated<'a> {
    pub(super) origins: Origins,
    pub(super) schema_at: Option<Cursor<'a>>,
    /// Position of the value that enables batches, if it is stated.
    pub(super) batch_at: Option<Cursor<'a>>,
    /// Position of `onRefused`; `None` unless the Subscription itself states it.
    pub(super) on_refused_at: Option<Cursor<'a>>,
    /// Positions of dead-letter options that only some sinks and formats use.
    pub(super) dead_letters_at: DeadLettersAt<'a>,
    /// Positions at which documents name secrets.
    pub(super) secrets_at: Vec<Cursor<'a>>,
}

impl<'a> Stated<'a> {
    /// Finds the positions of stated values. Values in a Subscription's `spec` take precedence over
    /// those in its Topic's `delivery`, and over those in the `defaults` beside `spec`.
    pub(super) fn new(
        spec: &Cursor<'a>,
        delivery: Option<&Cursor<'a>>,
        defaults: Option<&Cursor<'a>>,
    ) -> Self {
        let on_refused_at = spec.peek("batch.onRefused");
        // Values in the stored object of a topic have no positions.
        if !spec.is_stated() {
            return Self { on_refused_at, ..Self::default() };
        }
        let documents: Vec<Cursor<'a>> =
            [Some(spec), delivery, defaults].into_iter().flatten().cloned().collect();
        let mut found = Vec::new();
        declaration::origins(&DECLARED, &documents, "", &mut found);
        let at =
            |path: &str| found.iter().find(|(listed, _)| listed == path).map(|(_, at)| at.clone());
        let reply = spec.peek("reply").filter(|at| !at.is_null());
        let stated = found.iter().map(|(path, at)| (path.as_str(), at));
        let stated = stated.chain(reply.as_ref().map(|at| ("reply", at)));
        // A `reference` is left out: it has the position of its address, or the address beside it
        // is overridden.
        let is_setting =
            |(path, at): &(&str, &Cursor<'_>)| at.is_stated() && !path.ends_with("reference");
        let origins = stated.filter(is_setting).map(|(path, at)| {
            // `none` replaces the whole mapping. Its position is recorded for one field of the
            // mapping.
            let path = match path {
                "deadLetter" => "deadLetter.sink",
                "batch" => "batch.maxEvents",
                path => path,
            };
            (setting_name(path), at.location())
        });
        let batch = |section: &Cursor<'a>| section.peek("batch").filter(Cursor::is_mapping);
        let dead_letters_at = DeadLettersAt {
            // For a topic as the sink, this is the position of the topic's name.
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

/// Adds the position of every value that is the name of a secret.
fn add_secrets<'a>(at: &Cursor<'a>, found: &mut Vec<Cursor<'a>>) {
    if at.is_mapping() {
        at.entries().iter().flatten().for_each(|entry| add_secrets(&entry.value, found));
    } else if at.is_list() {
        at.list().iter().flatten().for_each(|element| add_secrets(element, found));
    } else if at.peek_text().is_some_and(|text| text.parse::<SecretName>().is_ok()) {
        found.push(at.clone());
    }
}
