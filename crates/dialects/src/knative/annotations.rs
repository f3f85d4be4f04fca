//! Reads our annotations. They configure retries by status, the request rate, hidden paths, the
//! stored response, and the budget of replies.
//!
//! Separate because annotations are inherited: a Subscription inherits them from its Channel, and a
//! Trigger from its Broker.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use super::super::translation::Translation;
use super::located::Located;
use delivery::document::findings::{Message, quoted};
use delivery::document::hint::hint;
use delivery::document::reader::Cursor;
use delivery::subscription::dead_letter_format::Response;
use delivery::subscription::kinds::{limits, statuses};
use delivery::subscription::profile::StatusSet;

/// Prefix of all our annotations.
const OURS: &str = "lastmile.dev/";
/// Annotation with statuses that are retried, whatever the profile specifies.
const RETRY_ON: &str = "lastmile.dev/retry-on";
/// Annotation with statuses that are never retried, whatever the profile specifies.
const NEVER_RETRY: &str = "lastmile.dev/never-retry";
/// Annotation with the maximum number of requests a second to the subscriber.
pub(super) const MAX_PER_SECOND: &str = "lastmile.dev/max-per-second";
/// Annotation of a broker or channel with its budget of replies: the maximum number of deliveries
/// that replies to replies cause for one published event.
pub(super) const MAX_REPLIES: &str = "lastmile.dev/max-replies";

/// An annotation whose value becomes native fields.
struct FieldAnnotation {
    name: &'static str,
    /// Paths of the native fields.
    paths: &'static [&'static str],
    read: fn(&Cursor<'_>) -> Option<Json>,
}

/// All annotations whose values become native fields. The others are read separately.
const FIELDS: [FieldAnnotation; 3] = [
    FieldAnnotation {
        name: MAX_PER_SECOND,
        paths: &["destination.maxPerSecond"],
        read: |at| limits::text(at, limits::PER_SECOND).map(Json::from),
    },
    // The annotation is `true` if the path of the subscriber's address is a credential.
    FieldAnnotation {
        name: "lastmile.dev/hide-path",
        paths: &["destination.hidePath", "deadLetter.hidePath"],
        read: |at| at.choice(&BOOLEANS).map(Json::from),
    },
    // The part of the last response that dead letters store.
    FieldAnnotation {
        name: "lastmile.dev/dead-letter-response",
        paths: &["deadLetter.response"],
        read: |at| {
            at.word(&Response::ALL, Response::as_str).map(|response| response.as_str().into())
        },
    },
];

/// The values of an annotation that is true or false. The values are strings, because Kubernetes
/// allows only strings in annotations.
const BOOLEANS: [(&str, bool); 2] = [("true", true), ("false", false)];

#[derive(Clone, Default)]
pub(super) struct Overrides<'a> {
    never_retry: Option<Located<'a, StatusSet>>,
    retry_on: Option<Located<'a, StatusSet>>,
    /// Values of the annotations in [`FIELDS`], by name.
    fields: BTreeMap<&'static str, Located<'a, Json>>,
}

fn known() -> impl Iterator<Item = &'static str> {
    FIELDS.iter().map(|field| field.name).chain([RETRY_ON, NEVER_RETRY, MAX_REPLIES])
}

/// Adds a warning for each unknown annotation with our prefix.
pub(super) fn report_unknown(annotations: &BTreeMap<&str, Cursor<'_>>) {
    let known: Vec<&str> = known().collect();
    for (name, at) in annotations.iter().filter(|(name, _)| name.starts_with(OURS)) {
        if !known.contains(name) {
            let message = Message::new(format!("unknown annotation {}", quoted(name)));
            at.warn(message.help(hint(name, &known)));
        }
    }
}

impl<'a> Overrides<'a> {
    pub(super) fn read(annotations: &BTreeMap<&str, Cursor<'a>>) -> Self {
        let [never_retry, retry_on] =
            [NEVER_RETRY, RETRY_ON].map(|name| located(annotations, name, statuses::text));
        if let (Some(never), Some(retry)) = (&never_retry, &retry_on)
            && let Some(status) = never.value.first_shared(&retry.value)
        {
            retry.at.error(format!("{status} is also in {NEVER_RETRY}; remove it from one list"));
        }
        let field = |annotation: &FieldAnnotation| {
            Some((
                annotation.name,
                located(annotations, annotation.name, |at| (annotation.read)(at))?,
            ))
        };
        Self { never_retry, retry_on, fields: FIELDS.iter().filter_map(field).collect() }
    }

    /// Returns these settings, completed by those of `base`. A status that `self` lists is
    /// removed from the lists of `base`.
    pub(super) fn with_fallback(self, base: &Self) -> Self {
        let stated = [&self.never_retry, &self.retry_on].map(set);
        let stated = stated[0].with(&stated[1]);
        let rest = |list: &Option<Located<'a, StatusSet>>| {
            list.clone().map(|list| Located { value: list.value.difference(&stated), ..list })
        };
        let mut fields = base.fields.clone();
        fields.extend(self.fields);
        Self {
            never_retry: self.never_retry.or_else(|| rest(&base.never_retry)),
            retry_on: self.retry_on.or_else(|| rest(&base.retry_on)),
            fields,
        }
    }

    /// Writes the settings into a native document.
    pub(super) fn translate(&self, to: &mut Translation) {
        let lists = [("retry.neverRetry", &self.never_retry), ("retry.retryOn", &self.retry_on)];
        for (path, list) in lists {
            if let Some(Located { value, at }) = list {
                to.set(path, &json!(value.ranges()), at);
            }
        }
        for FieldAnnotation { name, paths, .. } in &FIELDS {
            if let Some(Located { value, at }) = self.fields.get(name) {
                paths.iter().for_each(|path| to.set(path, value, at));
            }
        }
    }
}

/// Reads the value of an annotation, with its position.
pub(super) fn located<'a, T>(
    annotations: &BTreeMap<&str, Cursor<'a>>,
    name: &str,
    read: impl FnOnce(&Cursor<'a>) -> Option<T>,
) -> Option<Located<'a, T>> {
    let at = annotations.get(name)?;
    Some(Located { value: read(at)?, at: at.clone() })
}

fn set(located: &Option<Located<'_, StatusSet>>) -> StatusSet {
    located.as_ref().map(|list| list.value.clone()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use delivery::document::record::{Declaration, Record as _};
    use delivery::subscription::DeliverySettings;

    use super::*;

    fn is_declared(path: &str, fields: &[Declaration]) -> bool {
        let (name, rest) = path.split_once('.').unwrap_or((path, ""));
        let found = fields.iter().find(|field| field.name == name);
        found.is_some_and(|field| rest.is_empty() || is_declared(rest, &field.fields))
    }

    #[test]
    fn each_annotation_stands_for_fields_that_are_declared() {
        let declared = DeliverySettings::declarations();
        for FieldAnnotation { name, paths, .. } in FIELDS {
            for path in paths {
                assert!(is_declared(path, &declared), "{name}: no field {path}");
            }
        }
    }

    #[test]
    fn the_page_for_users_of_knative_names_each_annotation() {
        let page = include_str!("../../../../docs/coming-from/knative.md");
        let row = page.lines().find(|line| line.contains("annotations `lastmile.dev/"));
        let row = row.expect("a row with the annotations");
        for name in known() {
            let name = name.strip_prefix(OURS).expect("ours");
            let is_named = [format!("/{name}`"), format!("`{name}`")]
                .iter()
                .any(|mention| row.contains(mention));
            assert!(is_named, "docs/coming-from/knative.md does not name {name}");
        }
    }
}
