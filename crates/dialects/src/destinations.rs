//! Resolves references and foreign addresses with the `Destinations` documents and the mappings of
//! the deployment, and parses addresses.
//!
//! Separate because every family of formats uses this module, for endpoints and for sinks. The
//! module does not check that an address works.

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

/// Prefix of a full Azure resource id.
const AZURE_ID: &str = "/subscriptions/";

/// The targets of references and foreign addresses.
pub(super) struct Destinations<'a> {
    /// Entries of all `Destinations` documents.
    documented: Entries<'a>,
    /// Mappings of the deployment, which apply to keys that no document maps. A value is an
    /// address, or an entry with more fields.
    deployed: &'a BTreeMap<String, String>,
    deployed_entries: Entries<'a>,
}

/// Entries by key. Keys are in the form of [`comparable`].
type Entries<'a> = BTreeMap<Cow<'a, str>, Documented<'a>>;

struct Documented<'a> {
    key: Cursor<'a>,
    /// The whole entry as JSON if it is a mapping, otherwise the address as written.
    written: String,
    /// The target of the address; `None` if the address is unusable, which is already reported.
    target: Option<Target>,
    access: Access<'a>,
    /// True if the entry is a mapping; false if it is only an address.
    is_whole: bool,
}

impl<'a> Destinations<'a> {
    /// Reads the `Destinations` documents, in which each key may occur only once.
    /// [`deployed_entries`] has those entries of the deployment that set other fields besides the
    /// address. The documents have precedence over them.
    pub(super) fn read(
        documents: &[Cursor<'a>],
        deployed: &'a BTreeMap<String, String>,
        deployed_entries: Option<&Cursor<'a>>,
    ) -> Self {
        let mut documented = Entries::new();
        for document in documents {
            document.mapping(|fields| {
                fields.accept(&["apiVersion", "kind"]);
                // A `spec` whose entries are all commented out is null, and is not an error.
                let spec = fields.required("spec").filter(|spec| !spec.is_null());
                spec.into_iter().for_each(|spec| add_all(&mut documented, &spec));
            });
        }
        let mut of_deployment = Entries::new();
        deployed_entries.into_iter().for_each(|all| add_all(&mut of_deployment, all));
        Self { documented, deployed, deployed_entries: of_deployment }
    }

    /// Returns all fields of the entry for `key` except its address.
    pub(super) fn access(&self, key: &str) -> Option<&Access<'a>> {
        self.entry(&comparable(key)).map(|entry| &entry.access)
    }

    /// Returns the entry for a key in comparable form.
    fn entry(&self, key: &str) -> Option<&Documented<'a>> {
        self.documented.get(key).or_else(|| self.deployed_entries.get(key))
    }

    /// Returns the text of each entry of the documents, as a deployment stores it, by the key of the
    /// entry.
    pub(super) fn texts(&self) -> BTreeMap<String, String> {
        let usable = self.documented.iter().filter(|(_, entry)| entry.target.is_some());
        usable.map(|(name, entry)| (name.to_string(), entry.written.clone())).collect()
    }

    /// True if a document or the deployment maps this text to an address.
    pub(super) fn maps(&self, text: &str) -> bool {
        let name = comparable(text);
        self.documented.contains_key(&name) || self.deployed.contains_key(&*name)
    }

    /// True if this text is mapped, and its entry is not a placeholder. A placeholder is a mapping
    /// that repeats the address and has no authentication.
    pub(super) fn completes(&self, text: &str) -> bool {
        let is_place = |entry: &Documented<'_>| {
            let Some(Target::Endpoint(url)) = &entry.target else { return false };
            entry.is_whole
                && !entry.access.has_auth()
                && Url::parse(text).is_ok_and(|own| own == *url)
        };
        self.maps(text) && !self.entry(&comparable(text)).is_some_and(is_place)
    }

    /// Returns `key` if it is mapped to exactly this address and may be stored.
    pub(super) fn reference<'k>(&self, key: &'k str, address: &str) -> Option<&'k str> {
        let name = comparable(key);
        let of_entry =
            self.entry(&name).and_then(|entry| entry.target.as_ref()).map(ToString::to_string);
        let mapped = of_entry.or_else(|| {
            let text = self.deployed.get(&*name)?;
            parsed(text)?.ok().map(|target| target.to_string())
        });
        (may_be_stored(key) && mapped.as_deref() == Some(address)).then_some(key)
    }

    /// Resolves the text at the cursor with the documents, otherwise with the mappings of the
    /// deployment, otherwise as an address.
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
    // Add the entry even without a target, so that a reference to the entry is not reported again.
    let written = if value.is_mapping() {
        value.json().to_string()
    } else {
        text.unwrap_or_default().to_owned()
    };
    let is_whole = value.is_mapping();
    entries.insert(comparable(name), Documented { key, written, target, access, is_whole });
}

/// Returns the deployment's entries that are mappings, not plain addresses, as the `spec` of one
/// document.
pub(super) fn deployed_entries(deployed: &BTreeMap<String, String>) -> Option<String> {
    let entry = |(key, text): (&String, &String)| {
        let entry: serde_json::Map<_, _> = serde_json::from_str(text).ok()?;
        Some((key.clone(), serde_json::Value::from(entry)))
    };
    let entries: serde_json::Map<_, _> = deployed.iter().filter_map(entry).collect();
    (!entries.is_empty()).then(|| serde_json::Value::from(entries).to_string())
}

/// Reads an entry that is a mapping, not a plain address. If the entry has no address, its key is
/// the address.
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
    let access = Access::new(entry, value);
    match value.peek("url") {
        Some(url) => (url.clone(), url.peek_text(), access),
        None => (key.clone(), Some(name), access),
    }
}

/// Returns a key in the form in which keys are compared. Azure resource ids ignore case, and other
/// keys do not.
#[must_use]
pub fn comparable(key: &str) -> Cow<'_, str> {
    let is_id = key.get(..AZURE_ID.len()).is_some_and(|start| start.eq_ignore_ascii_case(AZURE_ID));
    if is_id { Cow::Owned(key.to_ascii_lowercase()) } else { Cow::Borrowed(key) }
}

/// Returns the address to which the deployment maps the reference at the cursor. `text` is the
/// address. Reports an invalid address.
fn of_deployment(text: &str, at: &Cursor<'_>) -> Resolved {
    match parsed(text) {
        Some(Ok(target)) => Resolved::Target(target),
        Some(Err(_)) | None => {
            at.error(
                "the deployment maps this reference to an invalid address: apply its Destinations \
                 document again",
            );
            Resolved::Reported
        }
    }
}
