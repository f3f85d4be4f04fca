//! Reads keys of `Destinations` documents, which are stored beside the addresses to which they were
//! resolved.
//!
//! This module is separate because a key and its address are one value in two fields. Both must
//! come from the same document.

use serde_json::{Value as Json, json};

use crate::document::declaration::{Declaration, Shown};
use crate::document::findings::Message;
use crate::document::kind::{Checked, Kind as _};
use crate::document::reader::{Cursor, Fields};
use crate::document::record::{Optional, Presence};

/// Maximum length of a key in bytes. Azure resource ids have a few hundred characters.
const MAX_BYTES: usize = 2_048;

/// The presence rule of the key of an address. The parameter is the name of the field that contains
/// the address. A key without that address has no effect, and a warning reports it.
pub struct KeyOf(pub &'static str);

/// The presence rule of an optional key, for reading, writing and display. [`KeyOf`] adds the rule
/// about the address.
const KEY: Optional<Checked> = Optional(Checked { max_chars: MAX_BYTES, check, schema }, "none");

fn check(text: &str) -> Result<(), String> {
    if !(1..=MAX_BYTES).contains(&text.len()) {
        return Err(format!("a key must have 1 to {MAX_BYTES} bytes"));
    }
    if text.contains("://") && url::Url::parse(text).is_ok_and(|url| url.has_host()) {
        return Err("a key cannot be a URL, because a URL may contain credentials".to_owned());
    }
    Ok(())
}

fn schema() -> Json {
    json!({ "minLength": 1 })
}

/// Returns true if a key may be stored. A URL must not be stored as a key, because it may contain
/// credentials.
#[must_use]
pub fn may_be_stored(key: &str) -> bool {
    check(key).is_ok()
}

impl Presence for KeyOf {
    type Value = Option<String>;

    fn read(&self, fields: &Fields<'_>, name: &'static str) -> Option<Option<String>> {
        let own = fields.own(name).filter(|at| !at.is_null());
        let is_stated =
            |document: &Cursor<'_>| document.peek(self.0).is_some_and(|address| !address.is_null());
        let documents = fields.documents();
        if let (Some(own), Some(document)) = (&own, documents.first())
            && !is_stated(document)
        {
            let message = Message::new(format!("no effect without {}", self.0));
            own.warn(message.help(format!("set {} too", self.0)));
        }
        let document = documents.iter().find(|document| is_stated(document));
        let at = document.and_then(|document| document.peek(name)).filter(|at| !at.is_null());
        match at {
            Some(at) => KEY.0.read(&at).map(Some),
            None => Some(None),
        }
    }

    fn write(&self, value: &Option<String>) -> Option<Json> {
        KEY.write(value)
    }

    fn shown(&self, value: &Option<String>) -> Option<Json> {
        KEY.shown(value)
    }

    fn declare(&self, name: &'static str, about: &[&str]) -> Declaration {
        KEY.declare(name, about)
    }

    fn show(&self, path: String, value: &Option<String>, shown: &mut Vec<Shown>) {
        KEY.show(path, value, shown);
    }
}
