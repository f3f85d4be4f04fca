//! Renders the parts of a request that templates define: body, header values and URL.
//!
//! This module is separate from `body`, which sends events as they were published. A missing value
//! is an error, so a request never contains a part that its author did not intend.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};
use url::Url;
use url::form_urlencoded::byte_serialize;
use uuid::Uuid;

use super::body;
use super::content::{Content, JSON, TEXT};
use super::context::AttemptContext;
use super::webhook_id::webhook_id;
use crate::delivery::Delivery;
use crate::delivery::outcome::Unsendable;
use crate::event::{Shape, convert};
use crate::subscription::templates::QueryParameter;
use crate::subscription::{Destination, Method, Subscription};
use crate::template::limits::URL_MAX_BYTES;
use crate::template::{Attempt, Origin, TemplateError, Values};

/// Collects the values that templates can use; `None` if the destination has no templates.
pub(super) fn values(
    subscription: &Subscription,
    deliveries: &[&Delivery],
    context: AttemptContext<'_>,
) -> Result<Option<Values>, Unsendable> {
    let destination = &subscription.destination;
    if !destination.has_templates() {
        return Ok(None);
    }
    let events = deliveries.iter().map(|delivery| event(subscription, delivery));
    let mut events = events.collect::<Result<Vec<Json>, Unsendable>>()?;
    let name = &subscription.name;
    let (namespace, topic) = (name.topic.namespace.as_str(), name.topic.topic.as_str());
    let origin = Origin { namespace, topic, name: &name.name };
    let ids: Vec<Uuid> = deliveries.iter().map(|delivery| delivery.id).collect();
    let id = webhook_id(&ids).to_string();
    let number = deliveries.iter().map(|delivery| delivery.attempts).max().unwrap_or_default();
    let attempt =
        Attempt { number: number.saturating_add(1), delivery_id: &id, time_ms: context.now_ms };
    let values = match (&subscription.batch, events.pop()) {
        (None, Some(event)) if events.is_empty() => Values::of_event(event, origin, attempt),
        (_, last) => {
            events.extend(last);
            Values::of_batch(events, origin, attempt)
        }
    };
    let mut secrets = BTreeMap::new();
    for name in destination.template_secrets() {
        let missing = || Unsendable::Unready(format!("the secret {name} was not loaded"));
        let secret = context.keyring.get(name).ok_or_else(missing)?;
        // Secrets are trimmed, because a secret that was stored from a file often ends with a line
        // feed.
        secrets.insert(name.to_string(), secret.expose().trim().to_owned());
    }
    Ok(Some(values.with_secrets(secrets)))
}

/// Returns an event in the form that templates get: a CloudEvent in JSON. An opaque event becomes
/// an object whose only member, `data`, is the text of the event.
pub(super) fn event(subscription: &Subscription, delivery: &Delivery) -> Result<Json, Unsendable> {
    let event = &delivery.event;
    if event.shape() == Shape::Opaque {
        return Ok(json!({ "data": event.text().as_ref() }));
    }
    let mapped = (event.shape() == Shape::Custom).then(|| delivery.mapped(&subscription.mapping));
    let topic = &delivery.subscription.topic;
    let text =
        convert::cloud_event(event, topic, mapped.as_ref()).map_err(Unsendable::Impossible)?;
    serde_json::from_str(&text).map_err(|_| {
        Unsendable::Impossible("the event is not JSON, which the template requires".to_owned())
    })
}

/// Builds the body of a request: the rendered template if there is one, otherwise the events.
pub(super) fn content(
    subscription: &Subscription,
    deliveries: &[&Delivery],
    values: Option<&Values>,
) -> Result<Content, Unsendable> {
    let Destination { body, body_text, content_type, method, .. } = &subscription.destination;
    let (usual, body) = match (values, body, body_text) {
        (Some(values), Some(body), _) => (JSON, body.template.render(values).map_err(impossible)?),
        (Some(values), None, Some(text)) => {
            (TEXT, text.template.render_text(values).map_err(impossible)?.into_bytes())
        }
        (_, _, _) if *method == Method::Get => {
            return Ok(Content { headers: Vec::new(), body: Vec::new().into() });
        }
        (_, _, _) => return body::content(subscription, deliveries),
    };
    Ok(Content::new(content_type.as_deref().unwrap_or(usual), body.into()))
}

/// Returns the URL of a request, after rendering the path and adding the query parameters of the
/// subscription.
pub(super) fn url(destination: &Destination, values: Option<&Values>) -> Result<Url, Unsendable> {
    let Some(values) = values else { return Ok((*destination.url).clone()) };
    let mut url = match &destination.url.path {
        Some(path) => path.template.render(values).map_err(impossible)?,
        None => (*destination.url).clone(),
    };
    let mut query: Vec<String> = url.query().map(ToOwned::to_owned).into_iter().collect();
    for QueryParameter { name, value } in &destination.query {
        let value = value.template.render_query_value(values).map_err(impossible)?;
        query.push(format!("{}={value}", byte_serialize(name.as_bytes()).collect::<String>()));
    }
    url.set_query(Some(query.join("&")).filter(|query| !query.is_empty()).as_deref());
    match url.as_str().len() {
        0..=URL_MAX_BYTES => Ok(url),
        bytes => Err(Unsendable::Impossible(format!(
            "destination.query: the URL with its parameters has {bytes} bytes; the limit is \
             {URL_MAX_BYTES} bytes"
        ))),
    }
}

fn impossible(error: TemplateError) -> Unsendable {
    Unsendable::Impossible(error.to_string())
}
