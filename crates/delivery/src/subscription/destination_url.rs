//! [`DestinationUrl`]: a URL whose path may contain expressions.
//!
//! This module is separate because the URL also identifies the destination. Health, limits and
//! consent belong to the URL with its unrendered expressions, so they are shared by all values of
//! an expression.

use std::ops::Deref;
use std::str::FromStr;

use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde_json::{Value as Json, json};
use url::Url;

use crate::document::kind::Kind;
use crate::document::reader::Cursor;
use crate::subscription::display;
use crate::subscription::kinds::address::Endpoint;
use crate::subscription::templates::{Problems, Templated};
use crate::template::{PathTemplate, TemplateError, has_tags};

/// The beginning of an expression, `{{`, percent-encoded in a URL.
const BEGIN: &str = "%7B%7B";
/// The end of an expression, `}}`, percent-encoded in a URL.
const END: &str = "%7D%7D";

/// A URL whose path may contain expressions, which are percent-encoded and not rendered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DestinationUrl {
    url: Url,
    /// The template that renders the URL of each request; `None` if the path contains no
    /// expressions.
    pub path: Option<Templated<PathTemplate>>,
}

impl From<Url> for DestinationUrl {
    fn from(url: Url) -> Self {
        Self { url, path: None }
    }
}

impl FromStr for DestinationUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let invalid = |_| "not a valid URL".to_owned();
        if !has_tags(text) {
            return Url::parse(text).map(Self::from).map_err(invalid);
        }
        if text.to_ascii_uppercase().contains(BEGIN) {
            return Err(format!(
                "a URL with expressions cannot contain the literal text {BEGIN}, because lastmile marks expressions with it"
            ));
        }
        let joined = |problems: Problems| {
            problems.iter().map(TemplateError::problem).collect::<Vec<_>>().join("; ")
        };
        let path = Templated::url(text, "destination.url").map_err(joined)?;
        Ok(Self { url: Url::parse(&encoded(text)).map_err(invalid)?, path: Some(path) })
    }
}

impl DestinationUrl {
    /// Decodes the expressions in a displayed form of this URL, so that people can read them.
    pub(super) fn readable(&self, shown: String) -> String {
        if self.path.is_some() { readable(&shown) } else { shown }
    }
}

impl Deref for DestinationUrl {
    type Target = Url;

    fn deref(&self) -> &Url {
        &self.url
    }
}

/// The field type of the field `url`.
pub(super) struct EventsUrl;

impl Kind for EventsUrl {
    type Value = DestinationUrl;

    fn read(&self, at: &Cursor<'_>) -> Option<DestinationUrl> {
        let text = at.text()?;
        if !has_tags(text) || !text.contains("://") {
            return Endpoint::OF_EVENTS.read(at).map(DestinationUrl::from);
        }
        let templated: DestinationUrl =
            text.parse().map_or_else(|problem: String| at.refuse(problem), Some)?;
        // The rules for URLs without expressions apply too.
        let url = Endpoint::OF_EVENTS.read_text(templated.as_str(), at)?;
        Some(DestinationUrl { url, ..templated })
    }

    fn write(&self, value: &DestinationUrl) -> Json {
        match &value.path {
            Some(path) => path.written.clone(),
            None => Endpoint::OF_EVENTS.write(&value.url),
        }
    }

    fn schema(&self) -> Json {
        Endpoint::OF_EVENTS.schema()
    }

    fn shown(&self, value: &DestinationUrl) -> Json {
        json!(value.readable(display(&value.url)))
    }
}

/// Percent-encodes the expressions in a URL.
fn encoded(text: &str) -> String {
    let (mut url, mut rest) = (String::with_capacity(text.len()), text);
    while let Some((before, (expression, after))) =
        rest.split_once("{{").and_then(|(before, from)| Some((before, from.split_once("}}")?)))
    {
        url.push_str(before);
        url.extend([BEGIN].into_iter().chain(utf8_percent_encode(expression, NON_ALPHANUMERIC)));
        url.push_str(END);
        rest = after;
    }
    url + rest
}

/// Decodes the expressions in a URL, for people.
fn readable(url: &str) -> String {
    let (mut text, mut rest) = (String::with_capacity(url.len()), url);
    while let Some((before, (expression, after))) =
        rest.split_once(BEGIN).and_then(|(before, from)| Some((before, from.split_once(END)?)))
    {
        text.push_str(before);
        text.push_str("{{");
        text.push_str(&percent_decode_str(expression).decode_utf8_lossy());
        text.push_str("}}");
        rest = after;
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_encoded_in_the_url_and_shown_as_they_are_written() {
        let text = "https://example.com/orders/{{ event.data.id }}/{{ event.type | replace('.', '/') }}/x?y=1";
        let url = encoded(text);
        assert_eq!(
            url,
            "https://example.com/orders/%7B%7B%20event%2Edata%2Eid%20%7D%7D/\
             %7B%7B%20event%2Etype%20%7C%20replace%28%27%2E%27%2C%20%27%2F%27%29%20%7D%7D/x?y=1"
        );
        assert_eq!(Url::parse(&url).unwrap().as_str(), url);
        assert_eq!(readable(&url), text);
        assert_eq!(readable("https://example.com/%7B%7B"), "https://example.com/%7B%7B");
    }

    #[test]
    fn encoded_braces_of_a_url_are_no_expression() {
        let text = "https://example.com/%7B%7Bevent%2Eid%7D%7D/x";
        let literal: DestinationUrl = text.parse().unwrap();
        assert_eq!(literal.readable(literal.to_string()), text);
        let both = "https://example.com/%7b%7Bevent%7D%7D/{{ event.id }}";
        let why = both.parse::<DestinationUrl>().unwrap_err();
        assert!(why.contains("%7B%7B, because lastmile marks expressions"), "{why}");
    }
}
