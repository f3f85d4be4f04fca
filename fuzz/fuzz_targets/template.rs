//! Any template with any event: no panic, no output beyond its limit, and no value that leaves its place.
//!
//! Input: an event as JSON in the first line, and a template in the rest. The template is compiled as a string of a body, as a
//! body, as a text, and as a segment of a path.

#![no_main]

use delivery::template::limits::{
    HEADER_MAX_BYTES, QUERY_VALUE_MAX_BYTES, RENDERED_MAX_BYTES, URL_MAX_BYTES,
};
use delivery::template::{Attempt, BodyTemplate, Origin, PathTemplate, TextTemplate, Values};
use lastmile_fuzz::{NOW_MS, lines};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use url::form_urlencoded;

/// A member with such a name is special to `serde_json`, which then reads another value than it wrote.
const RESERVED: &str = "$serde_json::private::";

fuzz_target!(|text: &str| {
    if text.contains(RESERVED) {
        return;
    }
    let ([event], template) = lines(text);
    let event: Value = serde_json::from_str(event).unwrap_or_else(|_| json!({ "data": event }));
    let values = || {
        let origin = Origin { namespace: "n", topic: "t", name: "s" };
        let attempt = Attempt { number: 1, delivery_id: "d", time_ms: NOW_MS };
        Values::of_event(event.clone(), origin, attempt)
    };
    body(&json!({ "a": template, template: [template, 1] }), &values());
    if let Ok(whole) = serde_json::from_str(template) {
        body(&whole, &values());
    }
    one_text(template, &values);
    path(template, &values());
});

/// A body is JSON whose shape is that of its template.
fn body(template: &Value, values: &Values) {
    let Ok(compiled) = BodyTemplate::compile(template, "body") else { return };
    let Ok(rendered) = compiled.render(values) else { return };
    assert!(rendered.len() <= RENDERED_MAX_BYTES);
    let rendered: Value = serde_json::from_slice(&rendered).expect("valid JSON");
    let names =
        |value: &Value| value.as_object().map(|object| object.keys().cloned().collect::<Vec<_>>());
    if template.is_object() {
        assert_eq!(names(template), names(&rendered));
    }
}

fn one_text(template: &str, values: &impl Fn() -> Values) {
    let Ok(compiled) = TextTemplate::compile(template, "text") else { return };
    if let Ok(text) = compiled.render_text(&values()) {
        assert!(text.len() <= RENDERED_MAX_BYTES);
    }
    if let Ok(header) = compiled.render_header(&values()) {
        assert!(header.len() <= HEADER_MAX_BYTES && header.is_ascii());
        assert!(!header.contains(char::is_control), "{header:?}");
    }
    if let Ok(value) = compiled.render_query_value(&values()) {
        assert!(value.len() <= QUERY_VALUE_MAX_BYTES);
        let query = format!("before=1&q={value}&after=2");
        let names = form_urlencoded::parse(query.as_bytes()).map(|(name, _)| name.into_owned());
        assert_eq!(names.collect::<Vec<_>>(), ["before", "q", "after"]);
    }
}

/// A URL has the host, and the segments around the expression, that its template has.
fn path(template: &str, values: &Values) {
    let url = format!("https://a.example/x/{{{{ {template} }}}}/y?z=1");
    let Ok(compiled) = PathTemplate::compile(&url, "url") else { return };
    let Ok(url) = compiled.render(values) else { return };
    assert!(url.as_str().len() <= URL_MAX_BYTES);
    let segments: Vec<&str> = url.path().split('/').collect();
    let [_, "x", _, "y"] = segments[..] else { panic!("{url}") };
    assert_eq!((url.host_str(), url.query()), (Some("a.example"), Some("z=1")));
}
