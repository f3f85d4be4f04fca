//! Recognises parts of a text that vary as a whole (times, addresses, ids, phone numbers), and
//! numbers that do not vary (codes and ports of services).
//!
//! Separate because [`super::template`] splits a text into parts, and this module classifies each
//! part by its form.

use std::net::{IpAddr, SocketAddr};

use uuid::Uuid;

use super::template::{ADDRESS, CODE_MAX_DIGITS, DURATION, EMAIL, ID, NUMBER, TIME};
use super::word::{Word, has_few_capitals, is_duration};

/// Minimum length of encoded bytes. Shorter parts are not treated as encoded bytes.
const TOKEN_MIN_CHARS: usize = 16;
const UUID_CHARS: usize = 36;
/// Lowest ephemeral port. Clients use varying ports from here on; this is the start of the default
/// `ip_local_port_range` of Linux.
const CLIENT_PORTS_FROM: u16 = 32_768;

/// Returns the placeholder for a part that varies as a whole, such as a time; `None` for any other
/// part.
pub(super) fn placeholder(part: &str) -> Option<&'static str> {
    let has_digit = || part.contains(|c: char| c.is_ascii_digit());
    let is_address = || part.parse::<IpAddr>().is_ok() || part.parse::<SocketAddr>().is_ok();
    if is_phone(part) {
        Some(NUMBER)
    } else if is_email(part) {
        Some(EMAIL)
    } else if has_digit() && is_address() {
        Some(ADDRESS)
    } else if is_time(part) {
        Some(TIME)
    } else if is_duration(part) {
        Some(DURATION)
    } else if is_uuid(part) || is_token(part) {
        Some(ID)
    } else {
        None
    }
}

/// True if the part is a UUID, optionally followed by a number: `2f7c…-000000000042-7`.
fn is_uuid(part: &str) -> bool {
    let (uuid, number) = part.split_at_checked(UUID_CHARS).unwrap_or((part, ""));
    let is_number = || number.strip_prefix('-').is_some_and(|rest| rest.parse::<u64>().is_ok());
    uuid.parse::<Uuid>().is_ok() && (number.is_empty() || is_number())
}

/// True if the text is the port of a service, such as `5432`.
pub(super) fn is_port(text: &str) -> bool {
    let is_short = text.len() >= 2 && text.chars().all(|c| c.is_ascii_digit());
    is_short && text.parse::<u16>().is_ok_and(|port| (1..CLIENT_PORTS_FROM).contains(&port))
}

/// True if the part is a code, such as `1015` in `1015: access denied`.
pub(super) fn is_code(part: &str) -> bool {
    (2..=CODE_MAX_DIGITS).contains(&part.len()) && part.chars().all(|c| c.is_ascii_digit())
}

/// True if the part is a phone number with its country code, such as `+1-555-0100`. A malformed
/// number such as `+4x` counts too.
fn is_phone(part: &str) -> bool {
    let rest = part.strip_prefix('+').unwrap_or_default();
    rest.starts_with(|c: char| c.is_ascii_digit())
        && rest.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.'))
}

fn is_email(part: &str) -> bool {
    let is_of = |text: &str, others: &str| {
        !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || others.contains(c))
    };
    part.split_once('@').is_some_and(|(user, domain)| {
        is_of(user, "._%+-~") && is_of(domain, ".-") && domain.trim_matches('.').contains('.')
    })
}

/// True if the part is a date, a time of day or both, in digits: `2026-11-20T07:03:00Z`,
/// `11/20/2026`, `07:03`.
fn is_time(part: &str) -> bool {
    let is_digit = |c: char| c.is_ascii_digit();
    let first = part.trim_start_matches(is_digit);
    let mut rest = first.chars();
    let separator = rest.next().filter(|c| matches!(c, '-' | ':' | '/'));
    let second = rest.as_str().trim_start_matches(is_digit);
    let digits = (part.len() - first.len(), rest.as_str().len() - second.len());
    let is_shape = match separator {
        Some(':') => matches!(digits, (1..=2, 2)),
        Some(separator) => is_date(part, separator),
        None => false,
    };
    is_shape && part.chars().all(|c| is_digit(c) || "-:/.+TZtz".contains(c))
}

/// True if the part is a date: year, month and day, or day and month in either order and a year.
/// `0049-30-1` is not a date.
fn is_date(part: &str, separator: char) -> bool {
    let mut numbers = part.splitn(3, separator);
    let mut next = || {
        let number = numbers.next().unwrap_or_default();
        let digits = number.trim_start_matches(|c: char| c.is_ascii_digit());
        let number = number.strip_suffix(digits).unwrap_or(number);
        (number.len(), number.parse().unwrap_or(u16::MAX))
    };
    let (first, second, third) = (next(), next(), next());
    let is_year = |(length, year): (usize, u16)| length == 2 || (1_900..2_200).contains(&year);
    let is_day = |(_, day): (usize, u16)| (1..=31).contains(&day);
    let is_full_year = first.0 == 4 && is_year(first);
    is_full_year && is_day(second) && is_day(third)
        || is_day(first) && is_day(second) && is_year(third)
}

/// True if the part is encoded bytes: Base64 in any alphabet, or a sequence of Base64 parts, as in
/// a JWT.
fn is_token(part: &str) -> bool {
    let is_any = |is: fn(&char) -> bool| part.chars().any(|c| is(&c));
    let is_kept = |word: &&str| !Word::new(word).is_whole_id() && has_few_capitals(word);
    let is_alphabet = |c: char| c.is_ascii_alphanumeric() || "+/-_.".contains(c);
    let kept = part.split(|c: char| !c.is_ascii_alphanumeric()).filter(is_kept);
    part.len() >= TOKEN_MIN_CHARS
        && is_any(char::is_ascii_uppercase)
        && is_any(char::is_ascii_lowercase)
        && part.trim_end_matches('=').chars().all(is_alphabet)
        // Random characters can form words and numbers by chance, so a third of the part may
        // consist of them.
        && kept.map(str::len).sum::<usize>() * 3 <= part.len()
}
