//! The check of one value of a stored text, with the name of its field in the message.
//!
//! Separate because every part of a text has such values.

use std::fmt::Display;

use url::Url;

use crate::subscription::topic_address;

/// The value of a field, or what is wrong with it.
pub(super) fn of_field<T>(field: &str, value: Result<T, impl Display>) -> Result<T, String> {
    value.map_err(|problem| format!("{field}: {problem}"))
}

/// A number of which there has to be at least one.
pub(super) fn at_least_one<T: PartialEq + Default>(field: &str, number: T) -> Result<T, String> {
    let valid = if number == T::default() { Err("0, at least 1 is expected") } else { Ok(number) };
    of_field(field, valid)
}

/// Where events go: an HTTP address, or that of a topic.
pub(super) fn address_or_topic(field: &str, text: &str) -> Result<Url, String> {
    let topic = Url::parse(text).ok().filter(|url| topic_address::topic_of(url).is_some());
    topic.map_or_else(|| address(field, text), Ok)
}

/// An HTTP address. It is in no message: it may hold credentials.
pub(super) fn address(field: &str, text: &str) -> Result<Url, String> {
    let is_http = |url: &Url| matches!(url.scheme(), "http" | "https");
    match Url::parse(text) {
        Ok(url) if is_http(&url) && url.host_str().is_some_and(|host| !host.is_empty()) => Ok(url),
        Ok(_) | Err(_) => {
            Err(format!("{field}: not an address, http://… or https://… is expected"))
        }
    }
}
