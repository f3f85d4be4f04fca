//! [`Credentials`]: the values that one request sends as credentials, and how they are hidden in what
//! comes back.
//!
//! An endpoint that refuses a request may repeat it: headers, address, all of it in base64. What is
//! kept of an answer, or told of a failure, is searched for a list of [`spellings`] of every value: as it is, in
//! known [`encodings`], and in up to three of them on top of each other. One automaton searches for all of them
//! ([`searcher`]). Letters of either case are alike, and control characters may be between them. Each place becomes
//! `[secret]`.
//!
//! A value of at least [`SHORT_BYTES`] is hidden wherever it occurs. A shorter one occurs by chance:
//! it is hidden where it stands alone, with no letter or digit beside it, and encoded where nothing else
//! is encoded with it. Where a text is cut, the beginning of a value at its end is hidden as well.
//!
//! Promises: time is linear in the text; there are at most [`CREDENTIALS_MAX`] values, and with more the whole text
//! is hidden. A text without any is unchanged. Does not find what was changed in another way: reversed, compressed,
//! hashed, or with words between.

#[cfg(test)]
mod encoded_tests;
mod encodings;
mod ending;
mod searcher;
mod spans;
mod spellings;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::{Arc, OnceLock};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::percent_decode_str;
use url::Url;

pub use self::ending::Ending;
use self::searcher::{ENOUGH_BYTES, Searcher};
pub use self::spellings::SHORT_BYTES;

/// What replaces a credential.
pub const HIDDEN: &str = "[secret]";
/// The most values that are searched for; with more, the whole text is hidden.
pub const CREDENTIALS_MAX: usize = 100;
/// A value of this length hardly ever occurs in an event by chance.
const CERTAIN_MIN_BYTES: usize = 8;

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
    values: Vec<Vec<u8>>,
    are_too_many: bool,
    is_single_use: bool,
    /// Made for the first text.
    searcher: OnceLock<Arc<Searcher>>,
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
    /// Values of one request only, such as a signature. They are searched in single encodings, because their searcher is made for
    /// each response.
    #[must_use]
    pub fn of_one_request() -> Self {
        Self { is_single_use: true, ..Self::default() }
    }

    /// Adds the value of a header that an event has. With it the set is of one request, or a searcher would be kept for each event.
    pub fn add_header_of_event(&mut self, value: &str) {
        self.is_single_use = true;
        self.add_header(value);
    }

    /// Adds the parameters that are credentials by their names, of an address that was made for an event; and its path, if that is
    /// one. With them the set is of one request.
    pub fn add_url_of_event(&mut self, url: &Url, is_path_hidden: bool) {
        self.is_single_use = true;
        self.add_query(url, is_credential_parameter);
        if is_path_hidden {
            self.add_path(url);
        }
    }

    /// Adds a value.
    pub fn add(&mut self, value: &[u8]) {
        if value.is_empty() || self.values.iter().any(|known| known == value) {
            return;
        }
        if self.values.len() == CREDENTIALS_MAX {
            self.are_too_many = true;
            return;
        }
        self.searcher = OnceLock::new();
        self.values.push(value.to_vec());
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
                self.add_encoded(if value.is_empty() { name } else { value });
            }
        }
    }

    /// Adds the path of an address, and each of its segments.
    pub fn add_path(&mut self, url: &Url) {
        let path = url.path().trim_start_matches('/');
        std::iter::once(path).chain(path.split('/')).for_each(|text| self.add_encoded(text));
    }

    /// Adds a part of an address, as it is sent and decoded.
    fn add_encoded(&mut self, text: &str) {
        self.add(text.as_bytes());
        self.add(&decoded(text));
    }

    /// Adds `name:password`, and both.
    fn add_pair(&mut self, pair: &[u8]) {
        self.add(pair);
        pair.splitn(2, |byte| *byte == b':').for_each(|part| self.add(part));
    }

    /// Those that occur in an event by chance hardly ever: of at least eight bytes.
    #[must_use]
    pub fn certain(mut self) -> Self {
        self.searcher = OnceLock::new();
        self.values.retain(|value| value.len() >= CERTAIN_MIN_BYTES);
        self.are_too_many = false;
        self
    }

    /// The text with each credential replaced by [`HIDDEN`]; `None` if there is none in it.
    #[must_use]
    pub fn hide(&self, text: &[u8], ending: Ending) -> Option<Vec<u8>> {
        if self.are_too_many && !text.is_empty() {
            return Some(HIDDEN.into());
        }
        // No spelling is shorter than its value, so most responses to healthy deliveries need no searcher.
        let shortest = self.values.iter().map(|value| value.len().min(ENOUGH_BYTES)).min()?;
        if text.is_empty() || (ending == Ending::Whole && text.len() < shortest) {
            return None;
        }
        let searcher = self.searcher.get_or_init(|| match self.is_single_use {
            true => Arc::new(Searcher::of_one_request(&self.values)),
            false => Searcher::kept(&self.values),
        });
        searcher.search(text, ending).replace_in(text, HIDDEN.as_bytes())
    }

    /// The same for a text.
    #[must_use]
    pub fn hide_in_text(&self, text: String) -> String {
        match self.hide(text.as_bytes(), Ending::Whole) {
            Some(hidden) => String::from_utf8_lossy(&hidden).into_owned(),
            None => text,
        }
    }
}
