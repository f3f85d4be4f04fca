//! [`Credentials`]: the values that one request sends as credentials, and how they are hidden in what
//! comes back.
//!
//! An endpoint that refuses a request may repeat it: headers, address, all of it in base64. What is
//! kept of an answer, or told of a failure, is searched for every value in every spelling: as it is, in
//! letters of either case, escaped as in JSON, in HTML or in an address, with control characters in it, as UTF-16
//! has them, in hexadecimal digits, in base64 at any alignment, and in two of these encodings on top of each other
//! ([`view`]). Each place becomes `[secret]`.
//!
//! A value of at least [`SHORT_BYTES`] is hidden wherever it occurs. A shorter one occurs by chance:
//! it is hidden where it stands alone, with no letter or digit beside it, and encoded where nothing else
//! is encoded with it. Where a text is cut, the beginning of a value at its end is hidden as well.
//!
//! Promises: time is linear in the text, for each value; there are at most [`CREDENTIALS_MAX`] of them,
//! and with more the whole text is hidden. A text without any is unchanged. Does not find what was changed
//! in another way: reversed, compressed, hashed, or with words between.

mod ending;
mod search;
#[cfg(test)]
mod tests;
mod view;

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::percent_decode_str;
use url::Url;

pub use self::ending::Ending;
pub use self::search::SHORT_BYTES;
use self::search::{Finder, Spans};
use self::view::View;

/// What replaces a credential.
pub const HIDDEN: &str = "[secret]";
/// The most values that are searched for; with more, the whole text is hidden.
pub const CREDENTIALS_MAX: usize = 100;
/// A value of so many bytes occurs in an event by chance hardly ever.
const CERTAIN_MIN_BYTES: usize = 8;
/// A text is searched in two encodings on top of each other up to this length; a longer one, which only a
/// reply is, in one.
const NESTED_MAX_BYTES: usize = 16 * 1_024;

/// Last words of the names of headers that hold credentials, wherever their values come from.
const LAST_WORDS: [&str; 15] = [
    "authorization",
    "auth",
    "cookie",
    "key",
    "apikey",
    "accesskey",
    "token",
    "accesstoken",
    "jwt",
    "secret",
    "password",
    "passwd",
    "pass",
    "credential",
    "credentials",
];

/// Words before `key` with which it is none.
const NO_KEYS: [&str; 5] = ["idempotency", "routing", "partition", "ordering", "deduplication"];
/// Parameters of addresses that are credentials too: of Azure Functions, of signed addresses.
const PARAMETERS: [&str; 3] = ["code", "sig", "signature"];

/// Whether a header holds a credential by its name: `authorization`, `cookie`, `x-api-key`,
/// `refresh_token`; not `idempotency-key`.
#[must_use]
pub fn is_credential(header: &str) -> bool {
    let is_one_of =
        |words: &[&str], word: &str| words.iter().any(|of| of.eq_ignore_ascii_case(word));
    let mut words = header.rsplit(['-', '_']);
    let (last, before) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    is_one_of(&LAST_WORDS, last)
        && !(last.eq_ignore_ascii_case("key") && is_one_of(&NO_KEYS, before))
}

/// Whether a parameter of an address holds a credential by its name.
#[must_use]
pub fn is_credential_parameter(name: &str) -> bool {
    is_credential(name) || PARAMETERS.iter().any(|of| of.eq_ignore_ascii_case(name))
}

/// The values that a request sends as credentials; printing them shows how many there are.
#[derive(Clone, Default)]
pub struct Credentials {
    values: Vec<Finder>,
    are_too_many: bool,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Credentials({})", self.values.len())
    }
}

fn decoded(text: &str) -> Vec<u8> {
    percent_decode_str(text).collect()
}

impl Credentials {
    /// Adds a value.
    pub fn add(&mut self, value: &[u8]) {
        if value.is_empty() || self.values.iter().any(|known| known.is(value)) {
            return;
        }
        if self.values.len() == CREDENTIALS_MAX {
            self.are_too_many = true;
            return;
        }
        self.values.push(Finder::new(value));
    }

    /// Adds the value of a header and what it consists of: without its scheme, the name and the password
    /// of `Basic`, each value of a cookie or a parameter.
    pub fn add_header(&mut self, value: &str) {
        let value = value.trim();
        self.add(value.as_bytes());
        if let Some((scheme, rest)) = value.split_once(' ') {
            self.add(rest.trim().as_bytes());
            if scheme.eq_ignore_ascii_case("basic")
                && let Ok(pair) = STANDARD.decode(rest.trim())
            {
                self.add_pair(&pair);
            }
        }
        for part in value.split([' ', ';', ',', '&']) {
            let Some((_, value)) = part.split_once('=') else { continue };
            // What ends with the padding of base64 is no parameter.
            self.add(value.trim_start_matches('=').trim_matches('"').as_bytes());
        }
    }

    /// Adds the user info of an address and the values of its query.
    pub fn add_url(&mut self, url: &Url) {
        self.add_user(url);
        self.add_query(url, |_| true);
    }

    /// Adds the user info of an address.
    pub fn add_user(&mut self, url: &Url) {
        match (url.username(), url.password()) {
            (user, Some(password)) => self.add_pair(&decoded(&format!("{user}:{password}"))),
            (user, None) => self.add(&decoded(user)),
        }
    }

    /// Adds the values of the query of an address whose names are chosen; a name without a value is one.
    pub fn add_query(&mut self, url: &Url, chosen: impl Fn(&str) -> bool) {
        for part in url.query().into_iter().flat_map(|query| query.split('&')) {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            if chosen(name) {
                self.add(&decoded(if value.is_empty() { name } else { value }));
            }
        }
    }

    /// Adds the path of an address, and each of its segments.
    pub fn add_path(&mut self, url: &Url) {
        let path = url.path().trim_start_matches('/');
        for text in std::iter::once(path).chain(path.split('/')) {
            self.add(&decoded(text));
        }
    }

    /// Adds `name:password`, and both.
    fn add_pair(&mut self, pair: &[u8]) {
        self.add(pair);
        pair.splitn(2, |byte| *byte == b':').for_each(|part| self.add(part));
    }

    /// Those that occur in an event by chance hardly ever: of at least eight bytes.
    #[must_use]
    pub fn certain(mut self) -> Self {
        self.values.retain(|value| value.len() >= CERTAIN_MIN_BYTES);
        self.are_too_many = false;
        self
    }

    /// The text with each credential replaced by [`HIDDEN`]; `None` if there is none in it.
    #[must_use]
    pub fn hide(&self, text: &[u8], ending: Ending) -> Option<Vec<u8>> {
        if text.is_empty() || (self.values.is_empty() && !self.are_too_many) {
            return None;
        }
        if self.are_too_many {
            return Some(HIDDEN.into());
        }
        let depth = if text.len() <= NESTED_MAX_BYTES { 2 } else { 1 };
        let mut spans = Spans::default();
        self.search(&View::of(text, ending == Ending::Cut), ending, depth, &mut spans);
        spans.replace_in(text, HIDDEN.as_bytes())
    }

    /// The same for a text.
    #[must_use]
    pub fn hide_in_text(&self, text: String) -> String {
        match self.hide(text.as_bytes(), Ending::Whole) {
            Some(hidden) => String::from_utf8_lossy(&hidden).into_owned(),
            None => text,
        }
    }

    /// Searches a text, and what it may stand for in this many encodings on top of each other.
    fn search(&self, view: &View, ending: Ending, depth: usize, spans: &mut Spans) {
        self.values.iter().for_each(|value| value.search(view, ending, spans));
        if depth > 0 {
            view.decoded().for_each(|decoded| self.search(&decoded, ending, depth - 1, spans));
        }
    }
}
