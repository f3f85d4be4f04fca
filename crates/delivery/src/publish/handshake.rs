//! Responds to senders that request permission before they publish. CloudEvents senders send
//! OPTIONS, and Event Grid sends an event.
//!
//! Neither request needs a key, because nothing is published and the response repeats only what the
//! sender sent. An Event Grid subscription in Azure can therefore validate an ingress as its
//! webhook.
//! <https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/http-webhook.md#4-abuse-protection>
//! <https://learn.microsoft.com/azure/event-grid/end-point-validation-event-grid-events-schema>

use std::str::FromStr;

use serde::Deserialize;
use serde_json::json;

use super::http_request::HttpRequest;
use super::refusal::Refusal;

/// Event type of Event Grid's validation event.
const VALIDATION: &str = "Microsoft.EventGrid.SubscriptionValidationEvent";

/// The UTF-8 byte order mark, which some programs write before JSON.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Names of the senders whose handshakes are granted. The default contains none, so no handshake is
/// granted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowedOrigins(Vec<String>);

impl FromStr for AllowedOrigins {
    type Err = String;

    /// Parses names that are separated by commas; `*` allows every name.
    fn from_str(text: &str) -> Result<Self, String> {
        let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
        let is_name = |name: &str| {
            name == "*"
                || name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-".contains(&byte))
        };
        let named = |name: &str| match is_name(name) {
            true => Ok(name.to_ascii_lowercase()),
            false => Err(format!(
                "\"{name}\" is not a DNS name of a sender: expected a name such as \
                 eventgrid.azure.net, or *"
            )),
        };
        names.map(named).collect::<Result<_, _>>().map(Self)
    }
}

impl AllowedOrigins {
    fn allows(&self, origin: &str) -> bool {
        self.0.iter().any(|allowed| allowed == "*" || allowed.eq_ignore_ascii_case(origin))
    }

    /// Returns the HTTP methods that are accepted, for the header `Allow`.
    const fn methods(&self) -> &'static str {
        if self.0.is_empty() { "POST" } else { "POST, OPTIONS" }
    }
}

/// Returns the response headers that grant a handshake; `None` if the request publishes events.
///
/// # Errors
/// - 405 for a method that is not allowed
/// - 400 for OPTIONS without an origin
/// - 403 for an origin that is not allowed
pub fn handshake(
    request: &HttpRequest<'_>,
    allowed: &AllowedOrigins,
) -> Result<Option<Vec<(&'static str, String)>>, Refusal> {
    match request.method {
        "POST" => return Ok(None),
        "OPTIONS" if !allowed.0.is_empty() => {}
        method => {
            let problem = format!("{method} is not allowed; send events with POST");
            return Err(Refusal { allow: Some(allowed.methods()), ..Refusal::new(405, problem) });
        }
    }
    let Some(origin) = request.header("webhook-request-origin") else {
        return Err(Refusal::new(400, "the handshake requires the header WebHook-Request-Origin"));
    };
    if !allowed.allows(origin) {
        return Err(Refusal::new(
            403,
            format!("the origin {origin:?} is not allowed to publish here"),
        ));
    }
    let granted = [
        ("allow", allowed.methods().to_owned()),
        ("webhook-allowed-origin", origin.to_owned()),
        ("webhook-allowed-rate", "*".to_owned()),
    ];
    Ok(Some(granted.into()))
}

/// Returns the response body for Event Grid's validation event: `{"validationResponse"}`. Returns
/// `None` for any other request.
#[must_use]
pub fn validation_response(request: &HttpRequest<'_>) -> Option<String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Event {
        event_type: String,
        data: Data,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Data {
        validation_code: String,
    }
    let body = request.body.strip_prefix(BYTE_ORDER_MARK).unwrap_or(request.body);
    let kind = request.header("aeg-event-type")?;
    if !kind.eq_ignore_ascii_case("SubscriptionValidation") {
        return None;
    }
    let [event] = serde_json::from_slice::<[Event; 1]>(body).ok()?;
    let code = event.data.validation_code;
    (event.event_type == VALIDATION).then(|| json!({ "validationResponse": code }).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request<'a>(
        method: &'a str,
        headers: &'a [(String, Vec<u8>)],
        body: &'a [u8],
    ) -> HttpRequest<'a> {
        HttpRequest { method, path: "/shop/orders", query: "", headers, body }
    }

    fn headers(pairs: &[(&str, &str)]) -> Vec<(String, Vec<u8>)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec())).collect()
    }

    #[test]
    fn every_method_but_post_is_refused_with_those_that_are_allowed() {
        for (allowed, methods) in [("", "POST"), ("eventgrid.azure.net", "POST, OPTIONS")] {
            let origins: AllowedOrigins = allowed.parse().unwrap();
            for method in ["GET", "HEAD", "PUT", "DELETE", "post"] {
                let refusal = handshake(&request(method, &[], b""), &origins).unwrap_err();
                assert_eq!((refusal.status, refusal.allow), (405, Some(methods)), "{method}");
            }
            assert_eq!(handshake(&request("POST", &[], b""), &origins), Ok(None));
        }
        let refusal = handshake(&request("OPTIONS", &[], b""), &AllowedOrigins::default());
        assert_eq!(refusal.map_err(|refusal| refusal.status), Err(405));
    }

    #[test]
    fn a_handshake_is_granted_to_whom_the_setting_names() {
        for (allowed, origin, status) in [
            ("eventgrid.azure.net", "eventgrid.azure.net", Ok(())),
            ("a.example.com, EventGrid.Azure.net", "eventgrid.azure.NET", Ok(())),
            ("*", "anybody.example.com", Ok(())),
            ("eventgrid.azure.net", "evil.example.com", Err(403)),
            ("eventgrid.azure.net", "x.eventgrid.azure.net", Err(403)),
            ("eventgrid.azure.net", "", Err(403)),
        ] {
            let headers = headers(&[("webhook-request-origin", origin)]);
            let found = handshake(&request("OPTIONS", &headers, b""), &allowed.parse().unwrap());
            let granted = found.map(|granted| {
                let granted = granted.expect("it is a handshake");
                assert!(granted.contains(&("webhook-allowed-origin", origin.to_owned())));
                assert!(granted.contains(&("webhook-allowed-rate", "*".to_owned())));
            });
            assert_eq!(granted.map_err(|refusal| refusal.status), status, "{allowed} {origin}");
        }
        let nobody = handshake(&request("OPTIONS", &[], b""), &"*".parse().unwrap());
        assert_eq!(nobody.map_err(|refusal| refusal.status), Err(400));
        for wrong in ["https://eventgrid.azure.net", "a b", "*.azure.net"] {
            let why = wrong.parse::<AllowedOrigins>().unwrap_err();
            assert!(why.contains("eventgrid.azure.net"), "{why}");
        }
    }

    #[test]
    fn the_event_that_validates_an_endpoint_is_answered_and_no_other() {
        let event = r#"[{"id":"1","topic":"/t","subject":"","eventType":"Microsoft.EventGrid.SubscriptionValidationEvent","eventTime":"2026-11-20T07:03:00Z","data":{"validationCode":"512d38b6","validationUrl":"https://x"},"metadataVersion":"1","dataVersion":"2"}]"#;
        let asks = headers(&[("aeg-event-type", "SubscriptionValidation")]);
        let found = validation_response(&request("POST", &asks, event.as_bytes()));
        assert_eq!(found.as_deref(), Some(r#"{"validationResponse":"512d38b6"}"#));
        let marked = format!("\u{feff}{event}");
        assert!(validation_response(&request("POST", &asks, marked.as_bytes())).is_some());
        let delivers = headers(&[("aeg-event-type", "Notification")]);
        let other = event.replace("SubscriptionValidationEvent", "SubscriptionDeletedEvent");
        let two = format!("[{0},{0}]", &event[1..event.len() - 1]);
        for (headers, body) in
            [(&delivers, event), (&vec![], event), (&asks, &other), (&asks, &two), (&asks, "[]")]
        {
            assert_eq!(validation_response(&request("POST", headers, body.as_bytes())), None);
        }
    }
}
