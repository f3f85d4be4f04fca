//! Finds the source of an event subscription: a topic, a domain, a storage account, a resource
//! group and so on.
//!
//! Separate because many fields may name it: the id, `topic`, `scope`, and the names of a template.
//! The name of the subscription and its dialect depend on the source.

use super::template::Resource;
use delivery::document::reader::Cursor;

/// Types of topics that have a parent: a namespace or a domain. The parent becomes the namespace
/// here.
const HELD: [&str; 2] = ["topics", "domaintopics"];
/// Suffix of the type of an event subscription. In the type of an extension resource, [`PROVIDERS`]
/// precedes this suffix.
const SUBSCRIPTIONS: &str = "/eventsubscriptions";
const PROVIDERS: &str = "/providers";

pub(super) struct Source<'t> {
    /// Provider and types in lower case, such as `microsoft.eventgrid/topics`; empty for a resource
    /// group or a whole Azure subscription.
    pub(super) kind: String,
    /// Namespace or domain of the topic, else the resource group; `None` if no field names one.
    pub(super) namespace: Option<&'t str>,
    pub(super) topic: &'t str,
    /// Azure subscription and resource group of the source; each is `None` if it is not named.
    pub(super) place: [Option<&'t str>; 2],
}

/// A source, with the field that names it.
pub(super) type Located<'a> = (Source<'a>, Cursor<'a>);

/// Returns the source of a resource, from the first field that names it: its id, `topic`, `scope`,
/// or its name.
pub(super) fn of_resource<'a>(resource: &'a Resource<'_>) -> Option<Located<'a>> {
    let cursor = &resource.cursor;
    let fields = ["id", "properties.topic", "topic", "scope"].map(|field| cursor.peek(field));
    let mut named = fields.into_iter().flatten();
    let group = || cursor.peek("resourceGroup").and_then(|group| group.peek_text());
    let (source, at) = named
        .find_map(|at| Some((Source::of_id(at.peek_text()?)?, at)))
        .or_else(|| Some((Source::of_names(&resource.kind, &resource.path)?, cursor.clone())))?;
    let namespace = source.namespace.or_else(group);
    let place = [source.place[0], source.place[1].or_else(group)];
    Some((Source { namespace, place, ..source }, at))
}

impl<'t> Source<'t> {
    /// Returns the names of the source's type. For a topic with a parent, this includes the
    /// parent's name.
    pub(super) fn names(&self) -> Vec<&'t str> {
        let is_held = HELD.iter().any(|held| self.kind.ends_with(&format!("/{held}")));
        let holder = self.namespace.filter(|_| is_held && self.kind.matches('/').count() > 1);
        holder.into_iter().chain([self.topic]).collect()
    }

    /// Parses an id, `/subscriptions/…/resourceGroups/G/providers/P/type/name/…`, which may end
    /// with the id of an event subscription. Also accepts a scope without its beginning,
    /// `P/type/name`.
    fn of_id(id: &'t str) -> Option<Self> {
        let parts: Vec<&str> = id.split('/').filter(|part| !part.is_empty()).collect();
        let parts = without_subscription(&parts);
        let after = |name: &str| {
            let at = parts.iter().position(|part| part.eq_ignore_ascii_case(name))?;
            parts.get(at + 1).copied()
        };
        let (subscription, group) = (after("subscriptions"), after("resourceGroups"));
        let provider = parts.iter().rposition(|part| part.eq_ignore_ascii_case("providers"));
        let named = match provider {
            Some(at) => parts.get(at + 1..)?,
            None if parts.first().is_some_and(|part| part.contains('.')) => parts,
            None => {
                let topic = group.or(subscription)?;
                let (kind, place) = (String::new(), [subscription, group]);
                return Some(Self { kind, namespace: Some(topic), topic, place });
            }
        };
        let (provider, pairs) = named.split_first()?;
        let pairs = pairs.chunks_exact(2);
        if !pairs.remainder().is_empty() {
            return None;
        }
        Self::of_pairs(provider, pairs, [subscription, group])
    }

    fn of_pairs(
        provider: &str,
        pairs: std::slice::ChunksExact<'_, &'t str>,
        place: [Option<&'t str>; 2],
    ) -> Option<Self> {
        let (mut kind, mut names) = (provider.to_ascii_lowercase(), Vec::new());
        for pair in pairs {
            let [segment, name] = pair else { return None };
            kind = format!("{kind}/{}", segment.to_ascii_lowercase());
            names.push(*name);
        }
        Self::of_kind(kind, &names, place)
    }

    /// Parses the type and the full name of an event subscription, as in templates:
    /// `topic/subscription`. The name of an extension resource includes its provider:
    /// `account/Microsoft.EventGrid/subscription`.
    fn of_names(kind: &str, path: &'t str) -> Option<Self> {
        let kind = kind.strip_suffix(SUBSCRIPTIONS)?;
        let names: Vec<&str> = path.split('/').collect();
        let (kind, around) = match (kind.strip_suffix(PROVIDERS), names.as_slice()) {
            (Some(kind), [around @ .., provider, _])
                if provider.eq_ignore_ascii_case("Microsoft.EventGrid") =>
            {
                (kind, around)
            }
            (None, [around @ .., _]) => (kind, around),
            (_, _) => return None,
        };
        // A type consists of its provider and one word for each name.
        let is_whole = kind.split('/').skip(1).count() == around.len();
        Self::of_kind(kind.to_owned(), around, [None; 2]).filter(|_| is_whole)
    }

    fn of_kind(kind: String, names: &[&'t str], place: [Option<&'t str>; 2]) -> Option<Self> {
        let last = kind.rsplit('/').next().unwrap_or_default();
        match names {
            [.., holder, topic] if HELD.contains(&last) => {
                Some(Self { namespace: Some(holder), topic, kind, place })
            }
            [.., topic] => Some(Self { namespace: place[1], topic, kind, place }),
            [] => None,
        }
    }
}

/// Returns the type of a resource's source, in lower case. If the source is unknown, the type
/// follows from the type of the resource. Example: `microsoft.eventgrid` for
/// `microsoft.eventgrid/eventsubscriptions`.
pub(super) fn kind_of(resource: &Resource<'_>, source: Option<&Located<'_>>) -> String {
    let of_type = || {
        let kind = resource.kind.strip_suffix(SUBSCRIPTIONS).unwrap_or(&resource.kind);
        kind.strip_suffix(PROVIDERS).unwrap_or(kind).to_owned()
    };
    source.map_or_else(of_type, |(source, _)| source.kind.clone())
}

/// Returns the id of a source, without the part for an event subscription.
pub(super) fn id_of_source(id: &str) -> String {
    let parts: Vec<&str> = id.split('/').filter(|part| !part.is_empty()).collect();
    format!("/{}", without_subscription(&parts).join("/"))
}

/// Returns the parts of an id, without the parts of the event subscription, which may be an
/// extension resource of its source.
fn without_subscription<'p, 't>(parts: &'p [&'t str]) -> &'p [&'t str] {
    let end = parts.iter().rposition(|part| part.eq_ignore_ascii_case("eventSubscriptions"));
    let parts = end.and_then(|end| parts.get(..end)).unwrap_or(parts);
    match parts {
        [source @ .., providers, _] if providers.eq_ignore_ascii_case("providers") => source,
        source => source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_names_the_namespace_the_topic_and_its_kind() {
        let group = "/subscriptions/s/resourceGroups/g";
        let grid = "providers/Microsoft.EventGrid";
        for (id, expected) in [
            (
                format!("{group}/{grid}/topics/t"),
                Some(("microsoft.eventgrid/topics", Some("g"), "t")),
            ),
            (
                format!("{group}/{grid}/topics/t/{grid}/eventSubscriptions/n"),
                Some(("microsoft.eventgrid/topics", Some("g"), "t")),
            ),
            (
                format!("{group}/{grid}/systemTopics/t/eventSubscriptions/n"),
                Some(("microsoft.eventgrid/systemtopics", Some("g"), "t")),
            ),
            (
                format!("{group}/{grid}/domains/d/topics/t"),
                Some(("microsoft.eventgrid/domains/topics", Some("d"), "t")),
            ),
            (
                format!("{group}/{grid}/domains/d/domainTopics/t/eventSubscriptions/n"),
                Some(("microsoft.eventgrid/domains/domaintopics", Some("d"), "t")),
            ),
            (
                format!(
                    "{group}/providers/Microsoft.EventHub/namespaces/h/{grid}/eventSubscriptions/n"
                ),
                Some(("microsoft.eventhub/namespaces", Some("g"), "h")),
            ),
            (format!("{group}/{grid}/eventSubscriptions/n"), Some(("", Some("g"), "g"))),
            (group.to_owned(), Some(("", Some("g"), "g"))),
            (format!("/subscriptions/s/{grid}/eventSubscriptions/n"), Some(("", Some("s"), "s"))),
            (
                "Microsoft.Storage/storageAccounts/a".to_owned(),
                Some(("microsoft.storage/storageaccounts", None, "a")),
            ),
            (format!("{group}/{grid}/topics"), None),
            ("topics/t".to_owned(), None),
            (String::new(), None),
        ] {
            let source = Source::of_id(&id);
            let found = source
                .as_ref()
                .map(|source| (source.kind.as_str(), source.namespace, source.topic));
            assert_eq!(found, expected, "{id}");
        }
    }
}
