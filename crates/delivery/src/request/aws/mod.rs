//! Composes requests to AWS resources, and translates the responses.
//!
//! This module is separate from requests to URLs because each AWS service has its own protocol. The
//! event is one member of a message, and a response with status 200 may be a failure. There is no
//! SDK client: the sender of all other requests also sends and signs these requests, so the same
//! limits apply.
//!
//! A request has the members that the AWS SDK would send for the same parameters. Only the ARN
//! determines the resource.

mod answer;
mod defaults;
mod errors;
mod protocol;

use serde_json::{Map, Value as Json};

pub use self::errors::{AwsFailure, failure_of};
use self::protocol::Protocol;
use super::content::Content;
use super::context::AttemptContext;
use super::request::{ANSWER_MAX_BYTES, Needs, Request};
use super::signer::Signer;
use super::templates;
use super::tls::RequestTls;
use crate::delivery::Delivery;
use crate::delivery::outcome::Unsendable;
use crate::subscription::aws::{AwsTarget, rendered};
use crate::subscription::header::{cannot_be_sent, check_value};
use crate::subscription::{Method, Subscription};
use crate::template::Values;

/// Composes the request of one attempt of a delivery to an AWS resource.
///
/// # Errors
/// [`Unsendable`] if a parameter cannot be derived from the event, or if the credentials were not
/// loaded.
pub(super) fn compose(
    subscription: &Subscription,
    target: &AwsTarget,
    deliveries: &[&Delivery],
    context: AttemptContext<'_>,
) -> Result<Request, Unsendable> {
    let destination = &subscription.destination;
    let [delivery] = deliveries else {
        return Err(Unsendable::Impossible(
            "an AWS target receives one event per request".to_owned(),
        ));
    };
    let values = templates::values(subscription, deliveries, context)?;
    let Content { body: payload, .. } =
        templates::content(subscription, deliveries, values.as_ref())?;
    let mut parameters = stated_parameters(target, values.as_ref())?;
    defaults::add(&mut parameters, target, delivery, || templates::event(subscription, delivery))?;
    let Protocol { path, query, headers, body } =
        Protocol::new(target, payload, parameters).map_err(Unsendable::Impossible)?;
    // Headers are checked, because Lambda parameters are headers and may contain text of the event.
    for (name, value) in &headers {
        check_value(value)
            .map_err(|problem| Unsendable::Impossible(cannot_be_sent(name, &problem)))?;
    }
    let mut url = target.endpoint().clone();
    url.set_path(&path);
    url.set_query(query.as_deref());
    let needs = Needs::Service(target.arn.service());
    Ok(Request {
        method: Method::Post,
        url,
        headers,
        body,
        timeout_ms: context.timeout_ms,
        needs,
        answer_max_bytes: ANSWER_MAX_BYTES,
        tls: RequestTls::default(),
        signer: Signer::for_destination(destination, context.keyring)?,
        hidden: destination.hidden_secrets(context.keyring),
        deliveries: vec![delivery.id],
    })
}

/// Renders the expressions in the parameters that the subscription states, and returns the result.
fn stated_parameters(
    target: &AwsTarget,
    values: Option<&Values>,
) -> Result<Map<String, Json>, Unsendable> {
    let (Some(stated), Some(values)) = (&target.parameters, values) else {
        return Ok(Map::new());
    };
    let json = stated.template.render(values);
    let json = json.map_err(|error| Unsendable::Impossible(error.to_string()))?;
    rendered(target.arn.service(), &json).map_err(Unsendable::Impossible)
}
