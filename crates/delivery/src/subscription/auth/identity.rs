//! [`WebIdentity`]: a token in which AWS confirms the identity of the caller (IAM outbound identity
//! federation).
//!
//! This module is separate because this type of authentication has no secrets. A receiver verifies
//! the token with the account's issuer and keys, which are public, and with the name of the role.

use std::ops::RangeInclusive;

use serde_json::{Value as Json, json};

use crate::document::kind::{Checked, Duration, Kind};
use crate::document::reader::Cursor;
use crate::document::record::{Or, Required};
use crate::subscription::auth::oauth2::check_parameter;
use crate::subscription::kinds::headers::STATED_PATTERN;
use crate::time::duration::{HOUR_MS, MINUTE_MS, SECOND_MS};

/// Default lifetime of a token. AWS has the same default.
/// <https://docs.aws.amazon.com/STS/latest/APIReference/API_GetWebIdentityToken.html>
pub const LIFETIME_DEFAULT_MS: u64 = 5 * MINUTE_MS;
/// Allowed lifetimes of a token; see [`LIFETIME_DEFAULT_MS`] for the source.
pub const LIFETIMES_MS: RangeInclusive<u64> = MINUTE_MS..=HOUR_MS;
/// Maximum length of a token's audience; see [`LIFETIME_DEFAULT_MS`] for the source.
pub const AUDIENCE_MAX_CHARS: usize = 1_000;

record! {
    /// A token issued by AWS that identifies the caller.
    #[derive(Debug, Clone, PartialEq, Eq, Hash)]
    pub struct WebIdentity {
        /// Audience of the token, in the claim `aud`.
        "audience" => pub audience: String = Required(Checked { max_chars: AUDIENCE_MAX_CHARS, check: check_audience, schema: audience_schema }),
        /// Lifetime of the token, in whole seconds; PT1M to PT1H.
        "lifetime" => pub lifetime_ms: u64 = Or(Lifetime, LIFETIME_DEFAULT_MS),
    }
}

fn audience_schema() -> Json {
    json!({ "minLength": 1, "pattern": STATED_PATTERN })
}

/// The field type of token lifetimes: durations in whole seconds.
struct Lifetime;

impl Kind for Lifetime {
    type Value = u64;

    fn read(&self, at: &Cursor<'_>) -> Option<u64> {
        let lifetime_ms = at.duration_ms(LIFETIMES_MS)?;
        let checked = check_lifetime(lifetime_ms);
        checked.map_or_else(|problem| at.refuse(problem), |()| Some(lifetime_ms))
    }

    fn write(&self, value: &u64) -> Json {
        Duration(LIFETIMES_MS).write(value)
    }

    fn schema(&self) -> Json {
        Duration(LIFETIMES_MS).schema()
    }
}

/// Checks that a text can be the audience of a token.
///
/// # Errors
/// A description of the problem, if the text is not a valid audience.
pub fn check_audience(audience: &str) -> Result<(), String> {
    check_parameter(audience)?;
    if audience.chars().count() > AUDIENCE_MAX_CHARS {
        return Err(format!("the audience is longer than {AUDIENCE_MAX_CHARS} characters"));
    }
    Ok(())
}

/// Checks that tokens can have this lifetime.
///
/// # Errors
/// A description of the problem, if the lifetime is not allowed.
pub fn check_lifetime(lifetime_ms: u64) -> Result<(), String> {
    if LIFETIMES_MS.contains(&lifetime_ms) && lifetime_ms.is_multiple_of(SECOND_MS) {
        return Ok(());
    }
    Err("the lifetime must be PT1M to PT1H, in whole seconds".to_owned())
}
