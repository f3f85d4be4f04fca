//! Authenticates publishers over HTTP, by a key or by a token that was signed with a key.
//!
//! A client sends its key in a header of Event Grid's clients, or in `Authorization: Bearer`, which
//! every client can send. Keys are compared in constant time. A token is `r=…&e=…&s=…`: its
//! resource, its expiration, and the HMAC-SHA256 of both with the base64 key.
//! <https://learn.microsoft.com/azure/event-grid/authenticate-with-access-keys-shared-access-signatures>
//!
//! The resource of a token (`r`) is not compared, because any key may publish to every topic.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use jiff::fmt::strtime;
use percent_encoding::percent_decode_str;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::http_request::HttpRequest;
use super::refusal::Refusal;
use crate::subscription::secret::Secret;
use crate::time::moment::AzureTime;

/// Time format of .NET and the JavaScript client, in UTC. Example: `6/5/2020 12:09:03 PM`.
const NET_TIME: &str = "%m/%d/%Y %I:%M:%S %p";

/// A key or a token that a request contains.
enum Shown<'a> {
    Key(&'a str),
    Token(&'a str),
}

/// The keys and tokens that a request contains. There is at least one. They are extracted first, so
/// that a request without any is refused before the keys of publishers are loaded.
pub struct ShownKeys<'a>(Vec<Shown<'a>>);

/// The accepted keys of publishers.
#[derive(Debug, Clone, Copy)]
pub struct KnownKeys<'k> {
    /// The accepted keys that could be read.
    pub read: &'k [Secret],
    /// True if other accepted keys could not be read. An unknown key may be one of them.
    /// The keys that were read stay valid, so that one unreadable key does not lock out all
    /// publishers.
    pub others: bool,
}

impl<'k> KnownKeys<'k> {
    /// Wraps keys that are the complete list of accepted keys.
    #[must_use]
    pub fn all(keys: &'k [Secret]) -> Self {
        Self { read: keys, others: false }
    }
}

/// The reason why a key or a token is not accepted. An unknown key may be one that could not be
/// read.
enum Problem {
    Unknown(&'static str),
    Invalid(&'static str),
}

impl<'a> ShownKeys<'a> {
    /// Returns the keys and tokens that a request contains.
    ///
    /// # Errors
    /// 401 if the request contains neither a key nor a token.
    pub fn read(request: &HttpRequest<'a>) -> Result<Self, Refusal> {
        let shown = shown(request);
        if shown.is_empty() {
            let problem = "the request has no key: send a key in aeg-sas-key or Authorization \
                           (SharedAccessKey KEY or Bearer KEY), or a token in aeg-sas-token or \
                           Authorization (SharedAccessSignature TOKEN)";
            return Err(Refusal::new(401, problem));
        }
        Ok(Self(shown))
    }
}

/// Checks that a request contains one of the known keys, or a token that was signed with one.
///
/// # Errors
/// - 401 for an unknown key, or an expired token
/// - 503 if the key may be one that could not be read
pub fn check_key(shown: &ShownKeys<'_>, keys: KnownKeys<'_>, now_ms: u64) -> Result<(), Refusal> {
    let mut refusal = "the key is not valid";
    let mut may_be_unread = false;
    for shown in &shown.0 {
        let problem = match shown {
            Shown::Key(key) if is_one_of(key, keys.read) => return Ok(()),
            Shown::Key(_) => Problem::Unknown(refusal),
            Shown::Token(token) => match check_token(token, keys.read, now_ms) {
                Ok(()) => return Ok(()),
                Err(problem) => problem,
            },
        };
        may_be_unread |= keys.others && matches!(problem, Problem::Unknown(_));
        let (Problem::Unknown(text) | Problem::Invalid(text)) = problem;
        refusal = text;
    }
    if may_be_unread {
        // The message has no details, because the caller is not authenticated yet.
        return Err(Refusal::new(503, "a key cannot be read at the moment; repeat the request"));
    }
    Err(Refusal::new(401, refusal))
}

/// Returns the keys and tokens in the headers of a request.
fn shown<'a>(request: &HttpRequest<'a>) -> Vec<Shown<'a>> {
    let mut shown = Vec::new();
    shown.extend(request.header("aeg-sas-key").map(Shown::Key));
    shown.extend(request.header("aeg-sas-token").map(Shown::Token));
    let authorization = request.header("authorization").and_then(|text| text.split_once(' '));
    if let Some((scheme, value)) = authorization {
        let value = value.trim();
        match scheme.to_ascii_lowercase().as_str() {
            "sharedaccesskey" | "bearer" => shown.push(Shown::Key(value)),
            "sharedaccesssignature" => shown.push(Shown::Token(value)),
            _ => {}
        }
    }
    shown
}

/// True if the text is one of the keys. Compares digests of equal length against every key in
/// constant time.
fn is_one_of(shown: &str, keys: &[Secret]) -> bool {
    let shown = Sha256::digest(shown);
    let mut found = 0;
    for key in keys {
        found |= Sha256::digest(text_of(key)).ct_eq(&shown).unwrap_u8();
    }
    found == 1
}

/// Returns the key without white space at its ends, such as line ends that files and consoles add.
fn text_of(key: &Secret) -> &str {
    key.expose().trim()
}

fn check_token(token: &str, keys: &[Secret], now_ms: u64) -> Result<(), Problem> {
    const UNREADABLE: Problem =
        Problem::Invalid("the token does not have the form r=RESOURCE&e=EXPIRATION&s=SIGNATURE");
    let (signed, signature) = token.rsplit_once("&s=").ok_or(UNREADABLE)?;
    let signature: Vec<u8> = percent_decode_str(signature).collect();
    let signature = STANDARD.decode(signature).map_err(|_| UNREADABLE)?;
    if !keys.iter().any(|key| has_signed(key, signed, &signature)) {
        return Err(Problem::Unknown("the token was not signed with a valid key"));
    }
    let expires = signed.split('&').find_map(|pair| pair.strip_prefix("e=")).ok_or(UNREADABLE)?;
    let not_a_time = Problem::Invalid("the expiration of the token is not a time");
    let expires_ms = expiry_ms(expires).ok_or(not_a_time)?;
    if expires_ms <= now_ms { Err(Problem::Invalid("the token has expired")) } else { Ok(()) }
}

fn has_signed(key: &Secret, signed: &str, signature: &[u8]) -> bool {
    // A key that is not base64 cannot sign tokens, but is valid as a key.
    let Ok(key) = STANDARD.decode(text_of(key)) else { return false };
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).expect("HMAC takes keys of every length");
    mac.update(signed.as_bytes());
    mac.verify_slice(signature).is_ok()
}

/// Parses the expiration of a token, in the format [`NET_TIME`] or RFC 3339. RFC 3339 may have a
/// space in place of `T`. Without an offset, the time is in UTC. The latest time of .NET means that
/// the token never expires.
fn expiry_ms(encoded: &str) -> Option<u64> {
    // .NET encodes a space as a plus sign. A plus sign itself is always percent-encoded.
    let text = percent_decode_str(&encoded.replace('+', " ")).decode_utf8().ok()?.into_owned();
    let in_net = || strtime::parse(NET_TIME, &text).ok()?.to_datetime().ok().map(AzureTime::utc);
    let expires = AzureTime::parse(&text).or_else(in_net)?;
    // No client computes an expiration before 1970.
    Some(expires.ms().unwrap_or(u64::MAX)).filter(|ms| *ms > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-20T07:03:00Z.
    const NOW_MS: u64 = 1_795_158_180_000;
    const KEY: &str = "c2hvcC1vcmRlcnMta2V5LW9uZQ==";
    /// A token signed with [`KEY`] by `generate_sas` of azure-eventgrid 4.22.1. It is valid for a
    /// minute after [`NOW_MS`].
    const PYTHON: &str = "r=http%3A%2F%2F127.0.0.1%3A8080%2Fapi%2Fevents%3FapiVersion%3D2018-01-01&e=2026-11-20%2007%3A04%3A00%2B00%3A00&s=EqkuqZcHGCF57PcwuXnzLFJYXfUOJIlthFG0j1pxCM8%3D";
    /// A token signed with [`KEY`] by `generateSharedAccessSignature` of @azure/eventgrid 5.12.0.
    /// It is valid for a minute after [`NOW_MS`].
    const NODE: &str = "r=http%3A%2F%2F127.0.0.1%3A8080%2Fapi%2Fevents%3FapiVersion%3D2018-01-01&e=11%2F20%2F2026%207%3A04%3A00%20AM&s=NRXrmKfWZH4DQ%2Fjp3c%2FJihiVt8aXNC9LJuut96ju6nI%3D";

    fn checked(name: &str, value: &str, now_ms: u64) -> Result<(), String> {
        let keys = ["another", "not-base64\n", KEY].map(|key| Secret::new(key.to_owned()));
        let headers = [(name.to_owned(), value.as_bytes().to_vec())];
        let (method, path) = ("POST", "/api/events");
        let request = HttpRequest { method, path, query: "", headers: &headers, body: b"" };
        let shown = ShownKeys::read(&request);
        let checked = shown.and_then(|shown| check_key(&shown, KnownKeys::all(&keys), now_ms));
        checked.map_err(|refusal| {
            assert_eq!(refusal.status, 401);
            refusal.text
        })
    }

    #[test]
    fn a_key_is_accepted_in_every_header_of_the_clients() {
        for (name, value) in [
            ("aeg-sas-key", KEY.to_owned()),
            ("aeg-sas-key", "not-base64".to_owned()),
            ("authorization", format!("SharedAccessKey {KEY}")),
            ("authorization", format!("bearer {KEY}")),
            ("aeg-sas-token", PYTHON.to_owned()),
            ("aeg-sas-token", NODE.to_owned()),
            ("authorization", format!("SharedAccessSignature {NODE}")),
        ] {
            assert_eq!(checked(name, &value, NOW_MS), Ok(()), "{name}: {value}");
        }
    }

    #[test]
    fn anything_else_is_refused_and_no_refusal_shows_a_key() {
        let changed = PYTHON.replacen("r=http", "r=https", 1);
        let later = PYTHON.replacen("2026", "2027", 1);
        for (name, value, text) in [
            ("x-other", KEY, "the request has no key"),
            ("authorization", KEY, "the request has no key"),
            ("authorization", "Basic c2hvcA==", "the request has no key"),
            ("aeg-sas-key", "", "not valid"),
            ("aeg-sas-key", "c2hvcC1vcmRlcnMta2V5LW9uZQ=", "not valid"),
            ("aeg-sas-key", PYTHON, "not valid"),
            ("authorization", "Bearer eyJhbGciOiJSUzI1NiJ9.e30.x", "not valid"),
            ("aeg-sas-token", KEY, "r=RESOURCE"),
            ("aeg-sas-token", "r=a&e=b&s=%", "r=RESOURCE"),
            ("aeg-sas-token", changed.as_str(), "not signed"),
            ("aeg-sas-token", later.as_str(), "not signed"),
        ] {
            let problem = checked(name, value, NOW_MS).expect_err(value);
            assert!(problem.contains(text) && !problem.contains(KEY), "{name}: {problem}");
        }
    }

    #[test]
    fn a_token_ends_at_its_time() {
        for token in [PYTHON, NODE] {
            assert_eq!(checked("aeg-sas-token", token, NOW_MS + 59_999), Ok(()));
            let ended = checked("aeg-sas-token", token, NOW_MS + 60_000).expect_err("it has ended");
            assert!(ended.contains("expired"), "{ended}");
        }
    }

    #[test]
    fn the_time_of_a_token_is_read_as_clients_write_it() {
        for (encoded, ms) in [
            ("2026-11-20%2007%3A03%3A00", Some(NOW_MS)),
            ("2026-11-20%2007%3A03%3A00%2B00%3A00", Some(NOW_MS)),
            ("2026-11-20T07%3A03%3A00Z", Some(NOW_MS)),
            ("2026-11-20T07%3A03%3A00.0000000Z", Some(NOW_MS)),
            ("2026-11-20T08:03:00%2B01:00", Some(NOW_MS)),
            ("11%2F20%2F2026%207%3A03%3A00%20AM", Some(NOW_MS)),
            ("11%2f20%2f2026+7%3a03%3a00+AM", Some(NOW_MS)),
            ("6%2F5%2F2020%2012%3A09%3A03%20PM", Some(1_591_358_943_000)),
            // The latest time of .NET means that the token never expires.
            ("9999-12-31T23%3A59%3A59.9999999Z", Some(u64::MAX)),
            ("12%2F31%2F9999+11%3A59%3A59+PM", Some(u64::MAX)),
            ("1%2F1%2F0001+12%3A00%3A00+AM", None),
            ("", None),
            ("tomorrow", None),
            ("13%2F20%2F2026%207%3A03%3A00%20AM", None),
            ("%FF", None),
            ("1969-01-01T00:00:00Z", None),
        ] {
            assert_eq!(expiry_ms(encoded), ms, "{encoded}");
        }
    }
}
