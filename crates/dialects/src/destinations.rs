//! Resolves references and addresses of other clouds by the `Destinations` documents and by what the deployment
//! has, and reads addresses.
//!
//! Separate because every family uses it, for endpoints and for sinks alike. It does not check
//! whether anything is at an address.

use std::borrow::Cow;
use std::collections::BTreeMap;

use url::Url;

use super::access::Access;
use super::destination_entry::DestinationEntry;
use delivery::document::findings::Message;
use delivery::document::reader::{Cursor, Entry};
use delivery::document::record::Record as _;
use delivery::subscription::kinds::address::{ADDRESSES, Resolved, Target, address, parsed};
use delivery::subscription::kinds::references::may_be_stored;

/// The prefix of a full resource id of Azure.
const AZURE_ID: &str = "/subscriptions/";

/// References and addresses of other clouds, with their targets.
pub(super) struct Destinations<'a> {
    /// From all `Destinations` documents.
    documented: Entries<'a>,
    /// Of the deployment, for what no document maps: addresses, and entries with more than that.
    deployed: &'a BTreeMap<String, String>,
    deployed_entries: Entries<'a>,
}

/// By reference as it is compared.
type Entries<'a> = BTreeMap<Cow<'a, str>, Documented<'a>>;

/// An entry of a `Destinations` document.
struct Documented<'a> {
    key: Cursor<'a>,
    /// The address, or all of the entry as JSON.
    written: String,
    /// `None` if the address cannot be used, which has been reported.
    target: Option<Target>,
    access: Access<'a>,
    /// It is a mapping, and no text.
    is_whole: bool,
}

impl<'a> Destinations<'a> {
    /// Reads the `Destinations` documents; a key may be defined only once in all of them. The deployment has addresses,
    /// and perhaps entries with more than that, in a document of [`deployed_entries`].
    pub(super) fn read(
        documents: &[Cursor<'a>],
        deployed: &'a BTreeMap<String, String>,
        deployed_entries: Option<&Cursor<'a>>,
    ) -> Self {
        let mut documented = Entries::new();
        for document in documents {
            document.mapping(|fields| {
                fields.accept(&["apiVersion", "kind"]);
                // Without any entry it is null: all of them may be comments.
                let spec = fields.required("spec").filter(|spec| !spec.is_null());
                spec.into_iter().for_each(|spec| add_all(&mut documented, &spec));
            });
        }
        let mut of_deployment = Entries::new();
        deployed_entries.into_iter().for_each(|all| add_all(&mut of_deployment, all));
        Self { documented, deployed, deployed_entries: of_deployment }
    }

    /// What the entry of a key says besides an address.
    pub(super) fn access(&self, key: &str) -> Option<&Access<'a>> {
        self.entry(&comparable(key)).map(|of| &of.access)
    }

    /// The entry of a key, as it is compared.
    fn entry(&self, key: &str) -> Option<&Documented<'a>> {
        self.documented.get(key).or_else(|| self.deployed_entries.get(key))
    }

    /// The entries of the documents as they are deployed, by reference as it is compared.
    pub(super) fn texts(&self) -> BTreeMap<String, String> {
        let usable = self.documented.iter().filter(|(_, of)| of.target.is_some());
        usable.map(|(name, of)| (name.to_string(), of.written.clone())).collect()
    }

    /// Whether a text is mapped to an address.
    pub(super) fn maps(&self, text: &str) -> bool {
        let name = comparable(text);
        self.documented.contains_key(&name) || self.deployed.contains_key(&*name)
    }

    /// The same, unless its entry says no more than the text does: it may be a place that is left for more.
    pub(super) fn completes(&self, text: &str) -> bool {
        let is_place = |of: &Documented<'_>| {
            let Some(Target::Endpoint(url)) = &of.target else { return false };
            of.is_whole && !of.access.has_auth() && Url::parse(text).is_ok_and(|own| own == *url)
        };
        self.maps(text) && !self.entry(&comparable(text)).is_some_and(is_place)
    }

    /// The key of an address, if its entry has exactly this address, and if it may be stored.
    pub(super) fn reference<'k>(&self, key: &'k str, address: &str) -> Option<&'k str> {
        let name = comparable(key);
        let of_entry = self.entry(&name).and_then(|of| of.target.as_ref()).map(ToString::to_string);
        let mapped = of_entry.or_else(|| {
            let text = self.deployed.get(&*name)?;
            parsed(text)?.ok().map(|target| target.to_string())
        });
        (may_be_stored(key) && mapped.as_deref() == Some(address)).then_some(key)
    }

    /// Resolves the text at the cursor: by the documents, then by the deployment, else as an address.
    pub(super) fn resolve(&self, text: &str, at: &Cursor<'_>) -> Resolved {
        let name = comparable(text);
        match (self.entry(&name), self.deployed.get(&*name)) {
            (Some(Documented { target: Some(target), .. }), _) => Resolved::Target(target.clone()),
            (Some(Documented { target: None, .. }), _) => Resolved::Reported,
            (None, Some(deployed)) => of_deployment(deployed, at),
            (None, None) => address(text, at),
        }
    }
}

/// Adds the entries of a `spec`.
fn add_all<'a>(entries: &mut Entries<'a>, spec: &Cursor<'a>) {
    spec.entries().unwrap_or_default().into_iter().for_each(|entry| add(entries, entry));
}

fn add<'a>(entries: &mut Entries<'a>, Entry { name, key, value }: Entry<'a>) {
    if let Some(Documented { key: first, .. }) = entries.get(&comparable(name)) {
        key.error(format!("{name} is defined twice; the first is at {}", first.location()));
        return;
    }
    let (at, text, access) = match value.is_mapping() {
        true => whole(name, &key, &value),
        false => (value.clone(), value.text(), Access::default()),
    };
    let unknown = Message::new("not an address").help(ADDRESSES);
    let target = text.and_then(|text| address(text, &at).or_refuse(&at, unknown));
    // Even without a target: a reference to it is then not reported once more.
    let written = if value.is_mapping() {
        value.json().to_string()
    } else {
        text.unwrap_or_default().to_owned()
    };
    let is_whole = value.is_mapping();
    entries.insert(comparable(name), Documented { key, written, target, access, is_whole });
}

/// The `spec` of the entries of a deployment that have more than an address, as one document.
pub(super) fn deployed_entries(deployed: &BTreeMap<String, String>) -> Option<String> {
    let entry = |(key, text): (&String, &String)| {
        let entry: serde_json::Map<_, _> = serde_json::from_str(text).ok()?;
        Some((key.clone(), serde_json::Value::from(entry)))
    };
    let entries: serde_json::Map<_, _> = deployed.iter().filter_map(entry).collect();
    (!entries.is_empty()).then(|| serde_json::Value::from(entries).to_string())
}

/// The address of an entry that has more than that, and the rest; the key may be the address.
fn whole<'a>(
    name: &'a str,
    key: &Cursor<'a>,
    value: &Cursor<'a>,
) -> (Cursor<'a>, Option<&'a str>, Access<'a>) {
    let entry = value.mapping(|fields| {
        let entry = DestinationEntry::read(fields)?;
        match entry.url {
            None if parsed(name).is_none() => fields.report_missing("url"),
            Some(_) | None => Some(entry),
        }
    });
    let Some(entry) = entry.flatten() else { return (key.clone(), None, Access::default()) };
    let access = Access::of(entry, value);
    match value.peek("url") {
        Some(url) => (url.clone(), url.peek_text(), access),
        None => (key.clone(), Some(name), access),
    }
}

/// A key as it is compared: resource ids of Azure ignore case, everything else does not.
#[must_use]
pub fn comparable(key: &str) -> Cow<'_, str> {
    let is_id = key.get(..AZURE_ID.len()).is_some_and(|start| start.eq_ignore_ascii_case(AZURE_ID));
    if is_id { Cow::Owned(key.to_ascii_lowercase()) } else { Cow::Borrowed(key) }
}

/// The address to which the deployment maps the reference at the cursor. It was checked when it was applied.
fn of_deployment(text: &str, at: &Cursor<'_>) -> Resolved {
    match parsed(text) {
        Some(Ok(target)) => Resolved::Target(target),
        Some(Err(_)) | None => {
            at.error(
                "the deployment maps this to what is not an address: apply its Destinations again",
            );
            Resolved::Reported
        }
    }
}
