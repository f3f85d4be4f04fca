//! Redacts a request and its response, so that people may see them. Pure.
//!
//! Separate so that one file contains all rules for showing headers and bodies.
//!
//! Promises: a header is shown only if lastmile sets it, or if its subscription marks the value as
//! not secret. Credentials of the request are redacted in the response, as dispatch does in dead
//! letters. In the body of a request, only the secrets of templates are redacted, because the rest
//! is the event.

use delivery::delivery::outcome::Exchange;
use delivery::request::Request;
use delivery::subscription::credentials::{Credentials, HIDDEN, is_credential};
use delivery::subscription::header::Value;
use delivery::subscription::sink::Sink;
use delivery::subscription::{Subscription, shown as shown_address};

/// The maximum number of bytes of a request body that are shown.
const REQUEST_SHOWN_MAX_BYTES: usize = 64 * 1_024;
/// The maximum number of bytes of a response body that are shown. These bytes are searched for
/// credentials in all encodings.
const RESPONSE_SHOWN_MAX_BYTES: usize = 4 * 1_024;

/// Prefixes of the names of headers that lastmile sets. Subscriptions cannot set such headers.
const OUR_PREFIXES: [&str; 2] = ["ce-", "aeg-"];
/// Other headers that contain no secrets. Subscriptions cannot set them, except `traceparent`.
/// Headers that begin with `x-amz` describe the operation of an AWS service.
const OUR_HEADERS: [&str; 12] = [
    "content-type",
    "prefer",
    "traceparent",
    "tracestate",
    "webhook-id",
    "webhook-request-origin",
    "webhook-signature",
    "webhook-timestamp",
    "x-amz-invocation-type",
    "x-amz-log-type",
    "x-amz-target",
    "x-amzn-query-mode",
];

/// The body of a request or a response. A long body is cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ShownBody {
    pub(crate) text: String,
    /// The number of bytes of the body before it was cut. For a response, only received bytes
    /// count.
    pub(crate) bytes: usize,
    pub(crate) is_cut: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ShownResponse {
    pub(crate) status: u16,
    /// All headers of the response, with credentials redacted.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: ShownBody,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ShownExchange {
    pub(crate) method: &'static str,
    /// The URL of the request, without credentials.
    pub(crate) url: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: ShownBody,
    /// The response; `None` if there was none.
    pub(crate) response: Option<ShownResponse>,
    /// The reason why there was no response.
    pub(crate) detail: Option<String>,
    pub(crate) started_ms: u64,
    /// The number of deliveries in the request.
    pub(crate) deliveries: usize,
}

impl ShownExchange {
    /// Redacts a request and its response. If the subscription is unknown, hides the path and all
    /// headers that may be secret.
    pub(crate) fn new(
        request: &Request,
        exchange: &Exchange,
        subscription: Option<&Subscription>,
    ) -> Self {
        Self::hiding(Credentials::default(), request, exchange, subscription)
    }

    /// Redacts a request and its response. Also redacts `credentials` in the response, because the
    /// request may contain them in a different form.
    pub(crate) fn hiding(
        mut credentials: Credentials,
        request: &Request,
        exchange: &Exchange,
        subscription: Option<&Subscription>,
    ) -> Self {
        let mut headers = Vec::new();
        for (name, value) in &request.headers {
            let is_shown = is_shown(name, value, subscription);
            if !is_shown {
                credentials.add_header(value);
            }
            let value = if is_shown { value.clone() } else { HIDDEN.to_owned() };
            headers.push((name.clone(), value));
        }
        request.hidden.iter().for_each(|secret| credentials.add_header(secret.expose()));
        // Add a header for the signature, because the sender signs later.
        headers
            .extend(request.signer.iter().map(|_| ("authorization".to_owned(), HIDDEN.to_owned())));
        credentials.add_url(&request.url);
        if subscription.is_none_or(|subscription| hides_path(request, subscription)) {
            credentials.add_path(&request.url);
        }
        let answer_bytes = exchange.answer().map_or(0, |(_, body)| body.len());
        let redacted = exchange.clone().redact(&credentials, RESPONSE_SHOWN_MAX_BYTES);
        // A header name may contain a sent credential too.
        let named = |(name, value): &(String, String)| {
            (credentials.hide_in_text(name.clone()), value.clone())
        };
        let response = redacted.answer().map(|(status, body)| ShownResponse {
            status,
            headers: redacted
                .content
                .iter()
                .flat_map(|content| &content.headers)
                .map(named)
                .collect(),
            body: ShownBody {
                text: String::from_utf8_lossy(body).into_owned(),
                bytes: answer_bytes,
                is_cut: answer_bytes > RESPONSE_SHOWN_MAX_BYTES,
            },
        });
        // Redact before cutting: the beginning of a secret would not be recognised.
        let without_secrets = request.body_without_secrets();
        Self {
            method: request.method.as_str(),
            url: url(request, subscription),
            headers,
            body: shown(without_secrets.as_deref().unwrap_or(&request.body)),
            response,
            detail: redacted.detail,
            started_ms: exchange.started_ms,
            deliveries: request.deliveries.len(),
        }
    }

    /// Returns the approximate memory that this value occupies, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let of_headers = |headers: &[(String, String)]| -> usize {
            headers.iter().map(|(name, value)| name.len() + value.len()).sum()
        };
        let of_response = self
            .response
            .as_ref()
            .map_or(0, |response| response.body.text.len() + of_headers(&response.headers));
        self.url.len() + self.body.text.len() + of_headers(&self.headers) + of_response
    }
}

fn url(request: &Request, subscription: Option<&Subscription>) -> String {
    match subscription {
        Some(subscription) => shown_address(&request.url, hides_path(request, subscription)),
        None => format!("{}/{HIDDEN}", request.url.origin().ascii_serialization()),
    }
}

/// Returns true if the path of the address is a credential. The address may be that of the
/// destination, of the replies, or of the sink.
fn hides_path(request: &Request, subscription: &Subscription) -> bool {
    let (destination, dead_letter) = (&subscription.destination, &subscription.dead_letter);
    let is_sink = matches!(&dead_letter.sink, Sink::Address(url) if *url == request.url);
    if is_sink && *destination.url != request.url {
        dead_letter.hide_path
    } else {
        destination.hide_path || destination.url.path.iter().any(|path| !path.secrets.is_empty())
    }
}

/// Returns true if the value of a header is not a secret.
pub(crate) fn is_shown(name: &str, value: &str, subscription: Option<&Subscription>) -> bool {
    let lower = name.to_ascii_lowercase();
    let auth = subscription.and_then(|subscription| subscription.destination.auth.as_ref());
    if is_credential(&lower) || auth.is_some_and(|auth| auth.has_header(name)) {
        return false;
    }
    let is_ours = OUR_HEADERS.contains(&lower.as_str())
        || OUR_PREFIXES.iter().any(|prefix| lower.starts_with(prefix));
    let mut stated = subscription
        .into_iter()
        .flat_map(|subscription| &subscription.destination.headers)
        .filter(|header| header.name.eq_ignore_ascii_case(name))
        .peekable();
    if stated.peek().is_none() {
        return is_ours;
    }
    // The subscription may have changed since the request, so compare the value with the
    // subscription's text.
    stated.all(|header| match &header.value {
        Value::Static(text) => text == value,
        Value::Path(_) => true,
        Value::Template(template) => template.secrets.is_empty(),
        Value::Concealed(_) | Value::Secret(_) => false,
    })
}

fn shown(body: &[u8]) -> ShownBody {
    let kept = body.get(..REQUEST_SHOWN_MAX_BYTES).unwrap_or(body);
    ShownBody {
        text: String::from_utf8_lossy(kept).into_owned(),
        bytes: body.len(),
        is_cut: kept.len() < body.len(),
    }
}

#[cfg(test)]
mod tests {
    use delivery::delivery::outcome::{Content, TransportResult};
    use delivery::request::{Method, Needs};
    use dialects::Source;

    use super::*;

    const FILE: &str = "apiVersion: lastmile.dev/v1\nkind: Subscription\n\
        metadata: {namespace: n, topic: t, name: s}\n\
        spec: {destination: {url: 'http://user:pass-word@127.0.0.1:1/in?code=query-secret', headers: [\
        {name: x-team, value: orders}, {name: x-api-key, value: in-the-file}, {name: x-from, path: source}, \
        {name: x-hidden, secret: 'env:TOKEN'}]}}\n";

    fn request() -> Request {
        let headers = [
            ("content-type", "application/json"),
            ("ce-id", "7"),
            ("aeg-event-type", "Notification"),
            ("X-Team", "orders"),
            ("x-api-key", "in-the-file"),
            ("x-from", "shop"),
            ("x-hidden", "from-environment"),
            ("x-unknown", "before-an-edit"),
        ];
        Request {
            method: Method::Post,
            url: "http://user:pass-word@127.0.0.1:1/in?code=query-secret".parse().unwrap(),
            headers: headers.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
            body: "{}".into(),
            timeout_ms: 1,
            needs: Needs::Status,
            answer_max_bytes: 1,
            tls: delivery::request::tls::RequestTls::default(),
            signer: None,
            hidden: Vec::new(),
            deliveries: Vec::new(),
        }
    }

    fn exchange() -> Exchange {
        let body =
            b"you sent in-the-file, from-environment, before-an-edit, pass-word and query-secret";
        let result =
            TransportResult::Answered { status: 400, retry_after: None, body: body.into() };
        let headers = [
            ("content-type", "text/plain"),
            ("x-request-id", "r-1"),
            ("x-echo", "from-environment"),
            ("set-cookie", "session=of-the-endpoint"),
        ];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let content = Content { headers, whole: true, ..Content::default() };
        Exchange { content: Some(content), ..Exchange::new(result, 0, 0) }
    }

    fn values(headers: &[(String, String)]) -> Vec<&str> {
        headers.iter().map(|(_, value)| value.as_str()).collect()
    }

    #[test]
    fn only_what_is_no_secret_is_shown_and_a_response_does_not_repeat_one() {
        let reading = dialects::read(&[Source { name: "f", text: FILE }]);
        let subscription = reading.catalogue.subscriptions().next().expect("it is valid");
        let shown = ShownExchange::new(&request(), &exchange(), Some(subscription));
        let expected =
            ["application/json", "7", "Notification", "orders", HIDDEN, "shop", HIDDEN, HIDDEN];
        assert_eq!(values(&shown.headers), expected);
        assert_eq!(shown.url, "http://127.0.0.1:1/in");
        let response = shown.response.unwrap();
        let hidden = format!("you sent {HIDDEN}, {HIDDEN}, {HIDDEN}, {HIDDEN} and {HIDDEN}");
        assert_eq!(response.body.text, hidden);
        assert_eq!(values(&response.headers), ["text/plain", "r-1", HIDDEN, HIDDEN]);
    }

    #[test]
    fn of_a_subscription_that_is_gone_nothing_of_its_own_is_shown() {
        let shown = ShownExchange::new(&request(), &exchange(), None);
        assert_eq!(values(&shown.headers)[3..], [HIDDEN; 5]);
        assert_eq!(shown.url, format!("http://127.0.0.1:1/{HIDDEN}"));
        assert!(!shown.response.unwrap().body.text.contains("environment"));
    }

    #[test]
    fn long_bodies_are_cut_and_say_how_long_they_were() {
        let request = Request { body: vec![b'a'; REQUEST_SHOWN_MAX_BYTES + 1].into(), ..request() };
        let result = TransportResult::Answered {
            status: 200,
            retry_after: None,
            body: vec![b'~'; RESPONSE_SHOWN_MAX_BYTES + 1],
        };
        let shown = ShownExchange::new(&request, &Exchange::new(result, 0, 0), None);
        assert!(shown.body.is_cut && shown.body.bytes == REQUEST_SHOWN_MAX_BYTES + 1);
        let body = shown.response.unwrap().body;
        assert!(body.is_cut && body.bytes == RESPONSE_SHOWN_MAX_BYTES + 1);
        assert_eq!(body.text.len(), RESPONSE_SHOWN_MAX_BYTES);
    }
}
