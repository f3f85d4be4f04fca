//! Reads the request to an API destination: its address, method, headers, query and authentication.
//!
//! Separate because three resources determine the request: the destination, the `HttpParameters` of
//! the target, and the connection. Parameters of the connection take precedence over those of the
//! target. <https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-api-destinations.html>

use std::collections::BTreeMap;

use delivery::document::findings::{Message, quoted};
use delivery::document::reader::{Cursor, Entry, Fields};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde_json::{Map, Value as Json, json};

use super::super::translation::Translation;
use super::connection::{Connection, Value};
use super::literal::literal;
use super::template_text::dynamic;

/// Headers that EventBridge removes from every request.
const REMOVED_HEADERS: [&str; 33] = [
    "a-im",
    "accept-charset",
    "accept-datetime",
    "accept-encoding",
    "cache-control",
    "connection",
    "content-encoding",
    "content-length",
    "content-md5",
    "date",
    "expect",
    "forwarded",
    "from",
    "host",
    "http2-settings",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "max-forwards",
    "origin",
    "pragma",
    "proxy-authorization",
    "range",
    "referer",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "via",
    "warning",
];

/// Characters of a constant that are escaped, because they would end the path or begin an
/// expression.
const NOT_IN_PATH: &AsciiSet =
    &CONTROLS.add(b' ').add(b'?').add(b'#').add(b'\\').add(b'{').add(b'}');

/// Reads an API destination, and sets the address, method and rate of the native Subscription.
pub(super) fn destination(
    fields: &Fields<'_>,
    parameters: Option<&Cursor<'_>>,
    to: &mut Translation,
) -> Option<()> {
    let endpoint = fields.required("InvocationEndpoint")?;
    let url = url(&endpoint, parameters)?;
    to.set("destination.url", &json!(url), &endpoint);
    if let Some(method) = fields.given("HttpMethod") {
        let text = literal(&method)?;
        if matches!(text, "HEAD" | "OPTIONS") {
            let help = "use POST, PUT, PATCH, DELETE or GET";
            return method
                .refuse(Message::new(format!("the method {text} is not supported")).help(help));
        }
        to.set("destination.method", &json!(text), &method);
    }
    if let Some(rate) = fields.given("InvocationRateLimitPerSecond") {
        to.set("destination.maxPerSecond", &rate.json(), &rate);
    }
    Some(())
}

/// Returns the endpoint, with a value in place of each `*`.
fn url(at: &Cursor<'_>, parameters: Option<&Cursor<'_>>) -> Option<String> {
    let values = parameters.and_then(|cursor| cursor.peek("PathParameterValues"));
    let mut parts = literal(at)?.split('*');
    let mut url = without_tags(parts.next().unwrap_or_default());
    let mut values = values.map_or(Some(Vec::new()), |cursor| cursor.list())?.into_iter();
    for part in parts {
        match values.next() {
            Some(value) => url.push_str(&segment(&value)?),
            None => {
                let message =
                    "PathParameterValues has no value for this *, so the * stays in the URL";
                at.warn(Message::new(message).help("add a value for each *"));
                url.push('*');
            }
        }
        url.push_str(&without_tags(part));
    }
    if let Some(value) = values.next() {
        value.warn("no effect: the endpoint has no * for this value");
    }
    Some(url)
}

/// Escapes the braces in a part of an endpoint, so that they do not begin an expression.
fn without_tags(part: &str) -> String {
    part.replace('{', "%7B").replace('}', "%7D")
}

/// Returns a part of a path as a template. Characters of a constant that would end the path are
/// escaped.
fn segment(at: &Cursor<'_>) -> Option<String> {
    let text = literal(at)?;
    if text.starts_with("$.") {
        return dynamic_at(at);
    }
    Some(utf8_percent_encode(text, NOT_IN_PATH).to_string())
}

/// Returns the constant at the cursor, or the expression for a path into the event.
fn dynamic_at(at: &Cursor<'_>) -> Option<String> {
    dynamic(literal(at)?).map_or_else(
        |path| {
            let message = format!("{} may select several values", quoted(path));
            at.refuse(Message::new(message).help("use a path such as $.detail.items[0].id"))
        },
        Some,
    )
}

/// Sets the headers and the query of the request. Parameters of the connection override those of
/// the target. Returns the content type, if a header states it.
pub(super) fn parameters<'a>(
    of_target: Option<&Cursor<'a>>,
    connection: &Connection<'a>,
    to: &mut Translation,
) -> Option<Option<Stated<'a>>> {
    let at = of_target.or_else(|| connection.auth.as_ref().map(|(_, at)| at))?;
    let mut headers = headers(of_target, connection)?;
    let content_type = headers.remove("content-type");
    let headers: Vec<Json> = headers.into_values().map(|(header, _)| header).collect();
    if !headers.is_empty() {
        to.set("destination.headers", &json!(headers), at);
    }
    let query = query(of_target, connection)?;
    if !query.is_empty() {
        to.set("destination.query", &Json::Object(query), at);
    }
    match content_type.map(|(mut header, at)| (header["value"].take(), at)) {
        Some((Json::Null, at)) => at.refuse("the content type cannot depend on the event"),
        stated => Some(stated),
    }
}

/// A value, with the position of the field that states it.
type Stated<'a> = (Json, Cursor<'a>);

/// Returns the entries of a section in `HttpParameters`.
fn entries<'a>(of_target: Option<&Cursor<'a>>, section: &str) -> Option<Vec<Entry<'a>>> {
    let section =
        of_target.and_then(|parameters| parameters.peek(section)).filter(|found| !found.is_null());
    section.map_or(Some(Vec::new()), |found| found.entries())
}

/// Returns the headers, keyed by name in lower case. Omits headers that EventBridge removes, and
/// adds a warning for each.
fn headers<'a>(
    of_target: Option<&Cursor<'a>>,
    connection: &Connection<'a>,
) -> Option<BTreeMap<String, Stated<'a>>> {
    let mut headers = BTreeMap::new();
    for Entry { name, value, .. } in entries(of_target, "HeaderParameters")? {
        headers.insert(name.to_ascii_lowercase(), (header(name, &value)?, value));
    }
    for parameter in &connection.headers {
        let (name, at) = (parameter.name, parameter.at.clone());
        let header = match &parameter.value {
            Value::Stated(_) => json!({ "name": name, "value": parameter.text() }),
            Value::Secret(secret) => json!({ "name": name, "secret": secret }),
        };
        headers.insert(name.to_ascii_lowercase(), (header, at));
    }
    headers.retain(|name, (_, at)| {
        let is_removed = REMOVED_HEADERS.contains(&name.as_str());
        if is_removed {
            at.warn("omitted: EventBridge does not send this header either");
        }
        !is_removed
    });
    Some(headers)
}

fn query(of_target: Option<&Cursor<'_>>, connection: &Connection<'_>) -> Option<Map<String, Json>> {
    let mut query = Map::new();
    for Entry { name, value, .. } in entries(of_target, "QueryStringParameters")? {
        query.insert(name.to_owned(), json!(dynamic_at(&value)?));
    }
    for parameter in &connection.query {
        query.insert(parameter.name.to_owned(), json!(parameter.text()));
    }
    Some(query)
}

/// Returns one header of a target. A header with a path is omitted from requests if the event has
/// no value at the path.
fn header(name: &str, at: &Cursor<'_>) -> Option<Json> {
    let value = dynamic_at(at)?;
    match at.peek_text().filter(|text| text.starts_with("$.")) {
        Some(path) => Some(json!({ "name": name, "path": path })),
        None => Some(json!({ "name": name, "value": value })),
    }
}
