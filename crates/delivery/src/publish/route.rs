//! Determines the topic of a request from its path, and the status of a successful response.
//!
//! The paths are those of lastmile, and those of clients for other systems, such as Event Grid.
//! Such clients cannot change their paths.

use percent_encoding::percent_decode_str;
use serde_json::json;

use super::http_request::HttpRequest;
use super::refusal::Refusal;
use crate::subscription::name::{NAME_RULE, RESERVED, TopicName, is_name};

/// Error message for unknown paths, which lists the known ones.
const ROUTES: &str = "the routes are POST /topics/{namespace}/{topic}, /{namespace}/{topic}, /topics/{topic}:publish, \
     /api/events and /";

/// Suffix of the paths that Event Grid's clients use for namespace topics.
/// <https://learn.microsoft.com/rest/api/eventgrid/dataplane/publish-cloud-events>
const PUBLISH: &str = ":publish";

/// Defaults for paths that do not name a topic, or name it without a namespace.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DefaultTopic {
    /// Topic for a path that names no topic.
    pub topic: Option<TopicName>,
    /// Namespace for a path that names a topic without a namespace.
    pub namespace: Option<String>,
}

impl From<TopicName> for DefaultTopic {
    fn from(topic: TopicName) -> Self {
        Self { namespace: Some(topic.namespace.clone()), topic: Some(topic) }
    }
}

/// The topic of a request, and the status of a successful response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// The topic to which the request publishes.
    pub topic: TopicName,
    /// HTTP status of the response if the queue accepts the message.
    pub status: u16,
}

impl Route {
    /// Returns the body of the response once the queue has accepted the message:
    /// `{"messageId","events"}`.
    #[must_use]
    pub fn answer(&self, message_id: &str, events: usize) -> String {
        json!({ "messageId": message_id, "events": events }).to_string()
    }
}

/// Determines the route of a request from its path.
///
/// # Errors
/// 404 for an unknown path, an invalid name, or a path that needs a default that is not set.
pub fn route(request: &HttpRequest<'_>, default: &DefaultTopic) -> Result<Route, Refusal> {
    let (topic, is_event_grid) = topic(request.path, default)?;
    let status = if is_event_grid || is_of_event_grid(request) { 200 } else { 202 };
    Ok(Route { topic, status })
}

/// True if a client of Event Grid sent the request. Such clients treat every status except 200 as a
/// failure.
fn is_of_event_grid(request: &HttpRequest<'_>) -> bool {
    request.query.split('&').any(|pair| pair.starts_with("api-version="))
        || ["aeg-sas-key", "aeg-sas-token"].iter().any(|name| request.header(name).is_some())
}

/// Returns the topic that a path names, and true if the path is one of Event Grid's.
fn topic(path: &str, default: &DefaultTopic) -> Result<(TopicName, bool), Refusal> {
    let path = path.strip_prefix('/').unwrap_or(path);
    let segments: Vec<&str> = path.strip_suffix('/').unwrap_or(path).split('/').collect();
    match segments[..] {
        [""] => Ok((whole_default(default)?, false)),
        ["api", "events"] => Ok((whole_default(default)?, true)),
        ["topics", named] => match named.strip_suffix(PUBLISH) {
            Some(named) => Ok((in_default_namespace(&decoded(named)?, default)?, true)),
            None => Err(Refusal::new(404, ROUTES)),
        },
        ["topics", namespace, named] => {
            let topic = named.strip_suffix(PUBLISH);
            let is_event_grid = topic.is_some();
            Ok((pair(&decoded(namespace)?, &decoded(topic.unwrap_or(named))?)?, is_event_grid))
        }
        [namespace, topic] => Ok((pair(&decoded(namespace)?, &decoded(topic)?)?, false)),
        _ => Err(Refusal::new(404, ROUTES)),
    }
}

fn whole_default(default: &DefaultTopic) -> Result<TopicName, Refusal> {
    let problem = "the path names no topic, and no default topic is configured; use \
                   /topics/{namespace}/{topic}";
    default.topic.clone().ok_or_else(|| Refusal::new(404, problem))
}

/// Returns the topic in a request of an Event Grid client for namespace topics. The request
/// contains `topic`, or `namespace/topic` with an encoded slash.
fn in_default_namespace(named: &str, default: &DefaultTopic) -> Result<TopicName, Refusal> {
    match (named.split_once('/'), &default.namespace) {
        (Some((namespace, topic)), _) => pair(namespace, topic),
        (None, Some(namespace)) => pair(namespace, named),
        (None, None) => {
            let problem = "the path names a topic without a namespace, and no default topic is \
                           configured; use namespace%2Ftopic";
            Err(Refusal::new(404, problem))
        }
    }
}

/// Returns the topic with this namespace and name. Refuses invalid names.
fn pair(namespace: &str, topic: &str) -> Result<TopicName, Refusal> {
    let may_be = |name: &str| is_name(name) && !name.starts_with(RESERVED);
    if may_be(namespace) && may_be(topic) {
        return Ok(TopicName { namespace: namespace.to_owned(), topic: topic.to_owned() });
    }
    let problem = format!(
        "the path contains no valid topic: {NAME_RULE}, and does not begin with {RESERVED}; \
         {ROUTES}"
    );
    Err(Refusal::new(404, problem))
}

fn decoded(segment: &str) -> Result<String, Refusal> {
    let decoded = percent_decode_str(segment).decode_utf8();
    decoded.map(Into::into).map_err(|_| Refusal::new(400, "the path is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn routed(path: &str, query: &str) -> Result<(String, u16), u16> {
        let default = DefaultTopic::from("shop/orders".parse::<TopicName>().unwrap());
        let request = HttpRequest { method: "POST", path, query, headers: &[], body: b"" };
        let found = route(&request, &default).map_err(|refusal| refusal.status)?;
        Ok((found.topic.to_string(), found.status))
    }

    #[test]
    fn a_path_names_a_topic_and_the_status_that_its_clients_expect() {
        for (path, query, topic, status) in [
            ("/topics/shop/returns", "", "shop/returns", 202),
            ("/topics/shop/returns/", "", "shop/returns", 202),
            ("/shop/returns/", "", "shop/returns", 202),
            ("/api/events/", "", "shop/orders", 200),
            ("/topics/returns:publish/", "", "shop/returns", 200),
            ("/topics/shop/a%20b%2Bc", "", "shop/a b+c", 202),
            ("/topics/shop/%C3%B6", "", "shop/ö", 202),
            ("/shop/returns", "", "shop/returns", 202),
            ("/default/broker", "x=y", "default/broker", 202),
            ("/", "", "shop/orders", 202),
            ("", "", "shop/orders", 202),
            ("/", "api-version=2018-01-01", "shop/orders", 200),
            ("/api/events", "", "shop/orders", 200),
            ("/api/events", "api-version=2018-01-01", "shop/orders", 200),
            ("/topics/shop/returns", "api-version=2018-01-01", "shop/returns", 200),
            ("/topics/shop/returns", "a=b&api-version=2018-01-01", "shop/returns", 200),
            ("/topics/shop/returns", "x-api-version=2018-01-01", "shop/returns", 202),
            ("/topics/returns:publish", "api-version=2024-06-01", "shop/returns", 200),
            ("/topics/other%2Freturns:publish", "", "other/returns", 200),
            ("/topics/other/returns:publish", "", "other/returns", 200),
        ] {
            assert_eq!(routed(path, query), Ok((topic.to_owned(), status)), "{path}?{query}");
        }
    }

    #[test]
    fn other_paths_are_refused() {
        for (path, status) in [
            ("/topics", 404),
            ("/topics/orders", 404),
            ("/topics/", 404),
            ("/topics/:publish", 404),
            ("/topics/a%2Fb%2Fc:publish", 404),
            ("/topics/orders/eventsubscriptions/a:receive", 404),
            ("/topics/shop/orders//", 404),
            ("/topics//orders", 404),
            ("/topics/shop/_unknown", 404),
            ("/_replays/orders", 404),
            ("/topics/shop/a%2Fb", 404),
            ("/topics/shop/a%00b", 404),
            ("/topics/shop/%FF", 400),
        ] {
            assert_eq!(routed(path, ""), Err(status), "{path}");
        }
    }

    #[test]
    fn without_a_default_a_path_has_to_name_both() {
        for (path, expected) in [
            ("/", Err(404)),
            ("/api/events", Err(404)),
            ("/topics/orders:publish", Err(404)),
            ("/topics/shop%2Forders:publish", Ok("shop/orders".to_owned())),
            ("/shop/orders", Ok("shop/orders".to_owned())),
        ] {
            let request = HttpRequest { method: "POST", path, query: "", headers: &[], body: b"" };
            let found = route(&request, &DefaultTopic::default());
            let found =
                found.map(|route| route.topic.to_string()).map_err(|refusal| refusal.status);
            assert_eq!(found, expected, "{path}");
        }
    }

    #[test]
    fn a_key_of_event_grid_is_a_sign_of_its_clients() {
        for (name, status) in [("aeg-sas-key", 200), ("aeg-sas-token", 200), ("authorization", 202)]
        {
            let headers = [(name.to_owned(), b"x".to_vec())];
            let path = "/topics/shop/orders";
            let request =
                HttpRequest { method: "POST", path, query: "", headers: &headers, body: b"" };
            let found = route(&request, &DefaultTopic::default()).map(|route| route.status);
            assert_eq!(found, Ok(status), "{name}");
        }
    }
}
