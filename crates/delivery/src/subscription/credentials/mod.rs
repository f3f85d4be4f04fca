//! [`Credentials`]: the credentials that one request contains, and their removal from responses and
//! errors.
//!
//! An endpoint that refuses a request may repeat parts of it: headers, the URL, or everything in
//! base64. So the stored part of a response, and each error message, is searched for many
//! [`spellings`] of every value. The spellings are the value itself, each known encoding of it
//! ([`encodings`]), and combinations of up to three encodings. One automaton finds all of them
//! ([`searcher`]). The search ignores case, and control characters between other characters. Each
//! match is replaced by `[secret]`.
//!
//! - A value of at least [`SHORT_BYTES`] is hidden wherever it occurs.
//! - A shorter value may also occur by chance. It is hidden only if no letter or digit is next to
//!   it. Its encodings are hidden only if nothing else is encoded together with it.
//! - If a text was cut, the beginning of a value at the end of the text is hidden too.
//! - A text without credentials is unchanged.
//! - If there are more than [`CREDENTIALS_MAX`] values, the whole text is hidden.
//!
//! The time is linear in the length of the text. The search does not find values that were changed
//! in other ways, such as reversed, compressed or hashed.

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

/// Replacement for a credential.
pub const HIDDEN: &str = "[secret]";
/// Maximum number of values to search for. With more values, the whole text is hidden.
pub const CREDENTIALS_MAX: usize = 100;
/// Minimum length in bytes of a value that hardly any event contains by chance.
const CERTAIN_MIN_BYTES: usize = 8;

/// Last words of header names that mark a credential, whatever the source of the value.
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

/// Words before `key` in names of headers that are not credentials, such as `idempotency-key`.
const NO_KEYS: [&str; 5] = ["idempotency", "routing", "partition", "ordering", "deduplication"];
/// Further query parameters that are credentials: in Azure Functions, and in signed URLs.
const PARAMETERS: [&str; 3] = ["code", "sig", "signature"];

/// Returns true if the name of a header marks a credential. Examples are `authorization`, `cookie`,
/// `x-api-key` and `refresh_token`, but not `idempotency-key`.
#[must_use]
pub fn is_credential(header: &str) -> bool {
    let is_one_of =
        |words: &[&str], word: &str| words.iter().any(|listed| listed.eq_ignore_ascii_case(word));
    let mut words = header.rsplit(['-', '_']);
    let (last, before) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    is_one_of(&LAST_WORDS, last)
        && !(last.eq_ignore_ascii_case("key") && is_one_of(&NO_KEYS, before))
}

/// Returns true if the name of a query parameter marks a credential.
#[must_use]
pub fn is_credential_parameter(name: &str) -> bool {
    is_credential(name) || PARAMETERS.iter().any(|parameter| parameter.eq_ignore_ascii_case(name))
}

/// The values that a request sends as credentials. Their `Debug` form shows only their number.
#[derive(Clone, Default)]
pub struct Credentials {
    values: Vec<Vec<u8>>,
    are_too_many: bool,
    is_single_use: bool,
    /// Built when the first text is searched.
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
    /// Returns an empty set for values that only one request has, such as a signature. The search
    /// covers single encodings only, because its automaton is built for each response.
    #[must_use]
    pub fn of_one_request() -> Self {
        Self { is_single_use: true, ..Self::default() }
    }

    /// Adds the value of a header that comes from an event. The set then belongs to one request:
    /// otherwise, an automaton would be cached for each event.
    pub fn add_header_of_event(&mut self, value: &str) {
        self.is_single_use = true;
        self.add_header(value);
    }

    /// Adds the credentials of a URL that was rendered for an event. These are query parameters
    /// whose name marks a credential, and the path if it is hidden. The set then belongs to one
    /// request.
    pub fn add_url_of_event(&mut self, url: &Url, is_path_hidden: bool) {
        self.is_single_use = true;
        self.add_query(url, is_credential_parameter);
        if is_path_hidden {
            self.add_path(url);
        }
    }

    /// Adds a value, unless it is empty or already in the set.
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

    /// Adds the value of a header, and its parts:
    /// - the value without its scheme;
    /// - user and password of `Basic`;
    /// - each value of a cookie or parameter.
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
            // Skips the padding at the end of base64, because it is not a parameter.
            self.add(value.trim_start_matches('=').trim_matches('"').as_bytes());
        }
    }

    /// Adds the user info of a URL and the values of its query.
    pub fn add_url(&mut self, url: &Url) {
        self.add_user(url);
        self.add_query(url, |_| true);
    }

    /// Adds the user info of a URL.
    pub fn add_user(&mut self, url: &Url) {
        match (url.username(), url.password()) {
            (user, Some(password)) => self.add_pair(&decoded(&format!("{user}:{password}"))),
            (user, None) => self.add(&decoded(user)),
        }
    }

    /// Adds the values of the query parameters for which `chosen` is true. If a parameter has no
    /// value, its name is added instead.
    pub fn add_query(&mut self, url: &Url, chosen: impl Fn(&str) -> bool) {
        for part in url.query().into_iter().flat_map(|query| query.split('&')) {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            if chosen(name) {
                self.add_encoded(if value.is_empty() { name } else { value });
            }
        }
    }

    /// Adds the path of a URL, and each of its segments.
    pub fn add_path(&mut self, url: &Url) {
        let path = url.path().trim_start_matches('/');
        std::iter::once(path).chain(path.split('/')).for_each(|text| self.add_encoded(text));
    }

    /// Adds a part of a URL in its encoded and in its decoded form.
    fn add_encoded(&mut self, text: &str) {
        self.add(text.as_bytes());
        self.add(&decoded(text));
    }

    /// Adds `user:password`, the user and the password.
    fn add_pair(&mut self, pair: &[u8]) {
        self.add(pair);
        pair.splitn(2, |byte| *byte == b':').for_each(|part| self.add(part));
    }

    /// Keeps only values of at least eight bytes, which hardly any event contains by chance.
    #[must_use]
    pub fn certain(mut self) -> Self {
        self.searcher = OnceLock::new();
        self.values.retain(|value| value.len() >= CERTAIN_MIN_BYTES);
        self.are_too_many = false;
        self
    }

    /// Replaces each credential in a text by [`HIDDEN`]. Returns `None` if the text contains none.
    #[must_use]
    pub fn hide(&self, text: &[u8], ending: Ending) -> Option<Vec<u8>> {
        if self.are_too_many && !text.is_empty() {
            return Some(HIDDEN.into());
        }
        // Skips short texts: no spelling is shorter than its value. So most responses of healthy
        // destinations need no automaton.
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

    /// Replaces each credential in a complete text by [`HIDDEN`].
    #[must_use]
    pub fn hide_in_text(&self, text: String) -> String {
        match self.hide(text.as_bytes(), Ending::Whole) {
            Some(hidden) => String::from_utf8_lossy(&hidden).into_owned(),
            None => text,
        }
    }
}
