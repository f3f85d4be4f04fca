//! Represents a topic as a destination. Dispatch publishes the events to that topic, and sends no
//! request.
//!
//! Such a destination has an address of its own form, `topic:namespace/name`. So code that shows,
//! stores or compares destinations needs no special case. This module is separate because no other
//! code depends on that form.
//!
//! No request can be sent to such an address, because it has no host.

use percent_encoding::percent_decode_str;
use url::Url;

use super::name::{TopicName, segment};

/// Scheme of addresses that are topics.
const SCHEME: &str = "topic";

/// Returns the address that represents a topic as a destination.
#[must_use]
pub fn address_of(topic: &TopicName) -> Url {
    let text = format!("{SCHEME}:{}/{}", segment(&topic.namespace), segment(&topic.topic));
    Url::parse(&text).expect("a scheme and two percent-encoded names are a valid URL")
}

/// Returns the topic of an address; `None` if the address is not that of a topic.
#[must_use]
pub fn topic_of(address: &Url) -> Option<TopicName> {
    if address.scheme() != SCHEME {
        return None;
    }
    let (namespace, topic) = address.path().split_once('/')?;
    let decoded = |text| percent_decode_str(text).decode_utf8().ok();
    format!("{}/{}", decoded(namespace)?, decoded(topic)?).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_is_read_back_from_its_address() {
        for (namespace, topic, address) in [
            ("default", "badword-broker", "topic:default/badword-broker"),
            (".", "..", "topic:%2E/%2E%2E"),
            ("a b", "ö?#%2F", "topic:a%20b/%C3%B6%3F%23%252F"),
        ] {
            let name = TopicName { namespace: namespace.to_owned(), topic: topic.to_owned() };
            let url = address_of(&name);
            assert_eq!(url.as_str(), address);
            assert_eq!(topic_of(&url), Some(name));
        }
    }

    #[test]
    fn no_other_address_is_a_topic() {
        for address in [
            "https://example.com/a/b",
            "topic:",
            "topic:a",
            "topic:/b",
            "topic:a/b%2Fc",
            "topic:a/%FF",
        ] {
            assert_eq!(topic_of(&Url::parse(address).unwrap()), None, "{address}");
        }
    }
}
