//! Tables of what templates do, by what they are about.

mod compilation;
mod expressions;
mod hostile;
mod outputs;
mod properties;

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use super::{Attempt, BodyTemplate, Origin, TemplateError, TextTemplate, Values};

const ORIGIN: Origin<'_> = Origin { namespace: "shop", topic: "orders", name: "billing" };
const ATTEMPT: Attempt<'_> = Attempt {
    number: 3,
    delivery_id: "0b9cf3ff-0000-4000-8000-000000000000",
    time_ms: 1_795_158_180_123,
};

fn event(data: Json) -> Json {
    json!({
        "specversion": "1.0", "id": "e-1", "source": "/shop", "type": "order.placed",
        "time": "2026-11-20T07:03:00.5Z", "subject": "orders/7", "partitionkey": "k", "data": data,
    })
}

fn values(data: Json) -> Values {
    let secrets = [("API_KEY", "s3cret"), ("SIGNING", "key")];
    let secrets = secrets.map(|(name, value)| (name.to_owned(), value.to_owned()));
    Values::of_event(event(data), ORIGIN, ATTEMPT).with_secrets(BTreeMap::from(secrets))
}

fn order() -> Json {
    json!({
        "text": "Größe \"L\"", "html": "<b>&'", "empty": "", "n": 5, "f": 1.5, "yes": true, "no": false,
        "nothing": null, "list": ["a", "b", "c"], "numbers": [1, 2.5], "none": [], "seconds": 1_795_158_180,
        "object": { "z": 1, "a": [true] }, "a b": "spaced", "big": 9_007_199_254_740_993_u64,
        "max": u64::MAX, "min": i64::MIN, "lines": "a\r\nb\0", "tag": "{{ event.id }}{% if %}",
    })
}

/// The JSON of a body that is only this string.
fn body(template: &str) -> Result<String, String> {
    let compiled = BodyTemplate::compile(&json!(template), "body");
    let compiled = compiled.map_err(|errors| errors[0].reason.clone())?;
    let rendered = compiled.render(&values(order())).map_err(|error| error.reason)?;
    Ok(String::from_utf8(rendered).unwrap())
}

fn text(template: &str) -> Result<TextTemplate, TemplateError> {
    TextTemplate::compile(template, "field")
}
