//! Serves the page that publishes an event. Its form contains a sample, or an event from the feed,
//! which the user can edit.
//!
//! The form sends the event to the ingress over HTTP, as `lastmile publish --to` does. Therefore,
//! the ingress checks, queues or refuses it like any other event.

use std::sync::Arc;

use adapters::error_words::cause_words;
use adapters::machine::Machine;
use axum::body::Bytes;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect, Response};
use delivery::ports::{Clock as _, JitterSource as _, MESSAGE_MAX_BYTES};
use delivery::subscription::name::TopicName;
use delivery::time::moment::rfc3339;
use maud::{Markup, html};
use serde_json::Value;
use url::Url;

use super::Live;
use super::preview::{Preview, preview};
use crate::console::app::{Console, SharedConsole};
use crate::console::shell::error::PageError;
use crate::console::shell::layout::{PageLayout, Section};
use crate::console::shell::markup::line;
use crate::console::shell::query::{href, pairs, value};
use crate::terminal::text;
use crate::terminal::text::indented;

/// The path of the form.
pub(in crate::console) const PUBLISH: &str = "/publish";
/// The maximum number of bytes of a form: the largest message, with every byte percent-encoded, and
/// the other fields.
pub(in crate::console) const EVENT_FORM_MAX_BYTES: usize = 3 * MESSAGE_MAX_BYTES + 64 * 1_024;
/// The maximum size of an event that is indented for editing.
const INDENTED_MAX_BYTES: usize = 64 * 1_024;
/// The maximum number of topics that the form offers.
const TOPICS_MAX: usize = 500;
/// The samples that the form offers: value and label.
const SAMPLES: [(&str, &str); 3] =
    [("cloudevents", "CloudEvents"), ("eventgrid", "Event Grid"), ("custom", "custom JSON")];

/// The data that all samples contain.
const DATA: &str = r#"{"order":17,"total":"42.00"}"#;

/// The values that the form shows.
#[derive(Default)]
struct Form {
    topic: String,
    body: String,
    sample: String,
    /// The id of the event in the feed whose text the form contains.
    from: Option<String>,
    /// The reason why the event was refused.
    refused: Option<String>,
    /// Describes the accepted message, such as `1 event as message ID`.
    accepted: Option<String>,
    /// The previews, one for each event in the form.
    previews: Vec<Preview>,
}

pub(in crate::console) async fn form(
    State(console): State<SharedConsole>,
    RawQuery(query): RawQuery,
) -> Result<Response, PageError> {
    let live = console.live()?;
    let pairs = pairs(query.unwrap_or_default().as_bytes());
    let field = |name| value(&pairs, name).map(ToOwned::to_owned);
    let sample = field("sample").unwrap_or_else(|| SAMPLES[0].0.to_owned());
    let accepted = field("accepted");
    let Some(from) = field("from") else {
        let (topic, body) = (field("topic").unwrap_or_default(), sample_of(&sample));
        let form = Form { topic, body, sample, accepted, ..Form::default() };
        return Ok(page(&console, form, StatusCode::OK));
    };
    let (topic, original) = seen(live, &from)?;
    let form = Form { topic, body: to_edit(&original), from: Some(from), ..Form::default() };
    Ok(page(&console, form, StatusCode::OK))
}

/// Returns the topic and the body of an event in the feed.
fn seen(live: &Live, id: &str) -> Result<(String, Arc<str>), PageError> {
    let published = live.event(id)?.published;
    let body = published.body.ok_or_else(|| {
        let why = "The event is not available, because it was received before lastmile dev \
                   started, or is a replay.";
        PageError::new(StatusCode::NOT_FOUND, "The event is not stored", why)
    })?;
    Ok((published.topic.unwrap_or_default(), body))
}

/// Formats an event for editing. An event above [`INDENTED_MAX_BYTES`] is not indented, because the
/// white space might make it larger than a message may be.
fn to_edit(original: &str) -> String {
    let is_small = original.len() <= INDENTED_MAX_BYTES;
    let indented = is_small.then(|| indented(original)).flatten();
    indented.unwrap_or_else(|| original.to_owned())
}

/// Undoes the changes that a browser makes to the text of a form. Returns the original text if the
/// user did not edit it.
fn edited(body: &str, original: Option<&str>) -> String {
    // Browsers write each line end as CR LF.
    let line_ends = |text: &str| text.replace("\r\n", "\n").replace('\r', "\n");
    let body = line_ends(body);
    let unchanged = original.filter(|original| body == line_ends(&to_edit(original)));
    unchanged.map_or(body, ToOwned::to_owned)
}

pub(in crate::console) async fn publish(
    State(console): State<SharedConsole>,
    body: Bytes,
) -> Result<Response, PageError> {
    let live = console.live()?;
    let pairs = pairs(&body);
    let raw = |name: &str| {
        let given = pairs.iter().find(|(key, _)| key == name);
        given.map(|(_, value)| value.clone()).unwrap_or_default()
    };
    let from = raw("from");
    // If the event has been dropped since, send the text of the form.
    let original = seen(live, &from).ok().map(|(_, body)| body);
    let event = edited(&raw("body"), original.as_deref());
    let topic = raw("topic");
    if raw("action") == "preview" {
        return Ok(previewed(&console, live, topic, event, from).await);
    }
    Ok(match send(live, &topic, &event).await {
        Ok(accepted) => {
            let query = [("topic", topic.as_str()), ("accepted", &accepted)];
            Redirect::to(&href(PUBLISH, query)).into_response()
        }
        Err(why) => refused(&console, topic, event, from, why),
    })
}

/// Responds with the form and a preview.
async fn previewed(
    console: &Console,
    live: &Live,
    topic: String,
    event: String,
    from: String,
) -> Response {
    let last = console.sources.last();
    let name: Result<TopicName, _> = topic.parse();
    let made = match &name {
        Ok(name) => preview(&last.reading.catalogue, name, &event, &live.allowed).await,
        Err(_) => Err(anyhow::anyhow!("Choose a topic.")),
    };
    match made {
        Ok(previews) => {
            let from = (!from.is_empty()).then_some(from);
            // Indent as before, so that an unedited event is still published in its original form.
            let body = if from.is_some() { to_edit(&event) } else { event };
            let form = Form { topic, body, from, previews, ..Form::default() };
            page(console, form, StatusCode::OK)
        }
        Err(error) => refused(console, topic, event, from, error.to_string()),
    }
}

/// Responds with the form and the reason why nothing was published.
fn refused(console: &Console, topic: String, event: String, from: String, why: String) -> Response {
    let from = (!from.is_empty()).then_some(from);
    let body = if from.is_some() { to_edit(&event) } else { event };
    let form = Form { topic, body, from, refused: Some(why), ..Form::default() };
    page(console, form, StatusCode::BAD_REQUEST)
}

/// Sends an event to the ingress. Returns a description of the accepted message. If the event is
/// refused, returns the reason as the error.
async fn send(live: &Live, topic: &str, event: &str) -> Result<String, String> {
    let name: TopicName = topic.parse().map_err(|_| "Choose a topic.".to_owned())?;
    let mut url: Url =
        live.ingress.parse().map_err(|_| "The address of the ingress is not valid.".to_owned())?;
    if let Ok(mut path) = url.path_segments_mut() {
        path.clear().extend(["topics", &name.namespace, &name.topic]);
    }
    let mut post = live.client.post(url).header("content-type", content_type(event));
    if let Some(key) = &live.ingress_key {
        post = post.bearer_auth(key.expose().trim());
    }
    let answer = post.body(event.to_owned()).send().await;
    let answer =
        answer.map_err(|error| format!("the ingress does not respond: {}", cause_words(&error)))?;
    let (status, body) = (answer.status(), answer.text().await.unwrap_or_default());
    let json: Value = serde_json::from_str(&body).unwrap_or_default();
    if status.is_success() {
        let events = json.get("events").and_then(Value::as_u64).unwrap_or(1);
        let message = json.get("messageId").and_then(Value::as_str).unwrap_or_default();
        return Ok(format!("{} as message {message}", text::counted(events, "event")));
    }
    let why = json.get("error").and_then(Value::as_str).unwrap_or(&body);
    Err(format!("{}: {why}", text::outcome(None, Some(status.as_u16()))))
}

/// Guesses the content type from the text, as `lastmile publish` does.
fn content_type(event: &str) -> &'static str {
    let says_version = |value: &Value| value.get("specversion").is_some();
    match serde_json::from_str::<Value>(event) {
        Ok(Value::Array(all)) if all.first().is_some_and(says_version) => {
            "application/cloudevents-batch+json"
        }
        Ok(value) if says_version(&value) => "application/cloudevents+json",
        Ok(_) => "application/json",
        // This is invalid JSON. A topic for opaque texts accepts it; for any other topic, the
        // ingress reports the syntax error.
        Err(_) if event.trim_start().starts_with(['{', '[']) => "application/json",
        Err(_) => "text/plain; charset=utf-8",
    }
}

/// Creates a sample event with a new id. `sample` is a value of [`SAMPLES`].
fn sample_of(sample: &str) -> String {
    let id = format!("sample-{:08x}", Machine.next_jitter().0);
    let now = rfc3339(Machine.now_ms());
    // Format the event as text, so that its members have the customary order.
    let event = match sample {
        "eventgrid" => format!(
            r#"{{"id":"{id}","subject":"orders/17","eventType":"order.created","eventTime":"{now}","dataVersion":"1","data":{DATA}}}"#
        ),
        "custom" => DATA.to_owned(),
        _ => format!(
            r#"{{"specversion":"1.0","id":"{id}","source":"lastmile-dev","type":"order.created","time":"{now}","datacontenttype":"application/json","data":{DATA}}}"#
        ),
    };
    indented(&event).unwrap_or(event)
}

fn page(console: &Console, form: Form, status: StatusCode) -> Response {
    let last = console.sources.last();
    let topics = last.reading.catalogue.topics().map(|topic| topic.name.to_string());
    let mut topics: Vec<String> = topics.take(TOPICS_MAX).collect();
    if !form.topic.is_empty() && !topics.contains(&form.topic) {
        topics.push(form.topic.clone());
    }
    let title = if form.from.is_some() { "Edit and resend" } else { "Publish an event" };
    let main = content(console, &form, &topics, title);
    PageLayout::new(title, Section::Publish, main).respond(console, status)
}

fn content(console: &Console, form: &Form, topics: &[String], title: &str) -> Markup {
    let ingress = console.live.as_ref().map(|live| live.ingress.as_str()).unwrap_or_default();
    html! {
        div .head { div {
            h1 { (title) }
            p .sub { "The event is sent like every other event: to " code { (ingress) "/topics/…" } ", the events queue, and dispatch." }
        } }
        @if let Some(why) = &form.refused { p #refused .invalid role="alert" { (line(why)) } }
        @if let Some(accepted) = &form.accepted {
            p #accepted .notice role="status" { "Accepted: " (line(accepted)) ". " a href="/live" { "Watch it live" } }
        }
        @if topics.is_empty() {
            p .notice { "There is no topic yet; write a subscription first. " a href="/subscriptions" { "Subscriptions" } }
        }
        form .panel method="post" action="/publish" {
            (console.token.field())
            (topic_field(form, topics))
            @if form.from.is_none() { (samples(form)) }
            (event_field(form))
            div .buttons {
                button .primary type="submit" { "Publish" }
                button type="submit" name="action" value="preview" { "Preview" }
            }
        }
        @for preview in &form.previews { (preview.markup()) }
    }
}

fn topic_field(form: &Form, topics: &[String]) -> Markup {
    html! { div .field {
        label for="topic" { "Topic" }
        select #topic name="topic" {
            @for topic in topics {
                option value=(topic) selected[*topic == form.topic] { (text::line(topic)) }
            }
        }
    } }
}

fn samples(form: &Form) -> Markup {
    html! { p .hint {
        "Sample: "
        @for (at, (value, name)) in SAMPLES.iter().enumerate() {
            @if at > 0 { " · " }
            a href=(href("/publish", [("sample", *value), ("topic", form.topic.as_str())]))
                aria-current=[(form.sample == *value).then_some("true")] { (name) }
        }
    } }
}

fn event_field(form: &Form) -> Markup {
    html! {
        div .field {
            label for="body" { "Event" }
            // HTML drops a line end right after the tag. Add one, so that a line end of the event
            // is kept.
            textarea #body name="body" rows="16" spellcheck="false" { "\n" (form.body) }
        }
        @if let Some(from) = &form.from {
            input type="hidden" name="from" value=(from);
            p .hint {
                "Without changes, the event is sent byte for byte as before, with the same id. A \
                 receiver that discards duplicates may ignore the event; change the id for a new \
                 event."
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_that_was_not_edited_is_sent_as_it_was() {
        let large = format!("{{\"a\":\r\n[{}1]}}", "1,".repeat(INDENTED_MAX_BYTES));
        for original in ["{\"a\":  1}", "{\"a\":\r\n1}\r", "a text\r\nof lines\n", &large] {
            let form = to_edit(original).replace("\r\n", "\n").replace('\n', "\r\n");
            assert_eq!(edited(&form, Some(original)), original);
            let other = form.replace('1', "2").replace("text", "word");
            let sent = edited(&other, Some(original));
            assert_eq!(sent, other.replace("\r\n", "\n").replace('\r', "\n"));
            assert_eq!(edited(&other, None), sent);
        }
        assert_eq!(to_edit("{\"a\":1}"), "{\n  \"a\": 1\n}");
        assert_eq!(to_edit(&large), large, "an indented event may exceed the limit of a message");
    }

    #[test]
    fn the_content_type_is_that_of_what_is_published() {
        for (sample, expected) in [
            ("cloudevents", "application/cloudevents+json"),
            ("eventgrid", "application/json"),
            ("custom", "application/json"),
        ] {
            assert_eq!(content_type(&sample_of(sample)), expected);
        }
        let batch = format!("[{}]", sample_of("cloudevents"));
        assert_eq!(content_type(&batch), "application/cloudevents-batch+json");
        assert_eq!(content_type("{\"id\":"), "application/json");
        assert_eq!(content_type("any text"), "text/plain; charset=utf-8");
    }
}
