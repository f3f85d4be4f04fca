//! Any request to the ingress.
//!
//! - Nothing panics.
//! - A refusal has a status and a reason.
//! - No request is accepted without the key.
//! - An accepted request becomes one message whose elements are all events.
//!
//! The input has lines with options, path, query and headers (`name: value`, separated by `|`), and
//! then the body.

#![no_main]

use std::sync::Arc;

use delivery::event::envelope::decode;
use delivery::event::{Element, Input};
use delivery::publish::{
    DefaultTopic, HttpRequest, KnownKeys, Refusal, ShownKeys, check_key, message, route,
};
use delivery::subscription::secret::Secret;
use lastmile_fuzz::NOW_MS;
use libfuzzer_sys::fuzz_target;

/// The key is not base64, so it cannot sign tokens: only the key itself is accepted.
const KEY: &str = "k3y-of-publishers";

fuzz_target!(|input: &[u8]| {
    let mut parts = input.splitn(5, |byte| *byte == b'\n');
    let mut next = || parts.next().unwrap_or_default();
    let (options, path, query, headers, body) = (next(), next(), next(), next(), next());
    let (path, query) = (String::from_utf8_lossy(path), String::from_utf8_lossy(query));
    let headers: Vec<(String, Vec<u8>)> =
        headers.split(|byte| *byte == b'|').filter_map(header).collect();
    let methods = ["POST", "GET", "OPTIONS", "PUT"];
    let option = |index: usize| usize::from(options.get(index).copied().unwrap_or_default());
    let method = methods[option(0) % methods.len()];
    let request = HttpRequest { method, path: &path, query: &query, headers: &headers, body };
    check_keys(&request);
    let topic = (option(1) % 2 == 0).then(|| "n/t".parse().expect("a topic"));
    let default = DefaultTopic { namespace: topic.is_none().then(|| "n".to_owned()), topic };
    let route = match route(&request, &default) {
        Ok(route) => route,
        Err(refusal) => return check_refusal(&refusal),
    };
    for input in [Input::Auto, Input::CloudEvents, Input::EventGrid, Input::Custom, Input::Opaque] {
        match message(&request, &route, input, 0) {
            Err(refusal) => check_refusal(&refusal),
            Ok(published) => {
                assert_eq!(message(&request, &route, input, 0).as_ref(), Ok(&published));
                assert_eq!(published.topic, route.topic);
                let body: Arc<str> = published.body.as_str().into();
                let elements: Vec<Element> = decode(&body, input).into_iter().collect();
                let is_event = |element: &Element| matches!(element, Element::Event(_));
                assert!(elements.iter().all(is_event), "{input:?}: {body}");
                assert_eq!(elements.len(), published.events, "{input:?}: {body}");
                let _answer = route.answer("id", published.events);
            }
        }
    }
});

fn header(line: &[u8]) -> Option<(String, Vec<u8>)> {
    let at = line.iter().position(|byte| *byte == b':')?;
    let (name, value) = line.split_at(at);
    let name = String::from_utf8_lossy(name).trim().to_ascii_lowercase();
    Some((name, value[1..].trim_ascii().to_vec()))
}

fn check_keys(request: &HttpRequest<'_>) {
    let check =
        |keys: &[Secret]| check_key(&ShownKeys::read(request)?, KnownKeys::all(keys), NOW_MS);
    // Without configured keys, every request is refused.
    assert!(check(&[]).is_err());
    match check(&[Secret::new(KEY.to_owned())]) {
        Ok(()) => {
            let has_key =
                |value: &[u8]| value.windows(KEY.len()).any(|window| window == KEY.as_bytes());
            assert!(request.headers.iter().any(|(_, value)| has_key(value)), "{request:?}");
        }
        Err(refusal) => {
            check_refusal(&refusal);
            assert!(!refusal.text.contains(KEY));
        }
    }
}

fn check_refusal(refusal: &Refusal) {
    assert!((400..600).contains(&refusal.status) && !refusal.text.is_empty(), "{refusal:?}");
}
