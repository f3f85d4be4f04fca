//! Converts a target of a rule into a native Subscription.
//!
//! Separate because a target needs all parts: its rule, its API destination, and the connection of
//! that destination.

use std::ops::RangeInclusive;

use delivery::document::findings::{Message, quoted};
use delivery::document::reader::{Cursor, Fields};
use delivery::subscription::aws::hosts_of;
use delivery::subscription::name::{SubscriptionName, TopicName};
use delivery::subscription::profile::Dialect;
use delivery::time::duration::{SECOND_MS, format_ms};
use serde_json::{Value as Json, json};

use super::super::translation::Translation;
use super::connection::{self, Connection};
use super::literal::{literal, refuse_deployed, section};
use super::resources::{self, Resources, Rule};
use super::secrets::Secrets;
use super::{input, request};

/// Content type of a body for which no header states the content type.
const CONTENT_TYPE: &str = "application/json; charset=utf-8";
/// Response timeout of EventBridge.
const TIMEOUT: &str = "PT5S";
/// Maximum and default number of retries of EventBridge.
/// <https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_RetryPolicy.html>
const RETRIES_MAX: u32 = 185;
/// Status that EventBridge retries and the native profile does not.
const RETRIED: u16 = 401;
/// Maximum and default time for which EventBridge retries.
const AGE_MAX_SECONDS: u32 = 86_400;
const AGE_SECONDS: RangeInclusive<u32> = 60..=AGE_MAX_SECONDS;

/// Converts the targets of a rule. Contains the values that the targets share.
pub(super) struct TargetReader<'a, 'r> {
    pub(super) rule: &'r Rule<'a>,
    pub(super) topic: TopicName,
    /// The event sources that the rule's pattern names exactly.
    pub(super) sources: Vec<String>,
    pub(super) filter: Json,
    pub(super) filter_at: Cursor<'a>,
    pub(super) state: Option<Cursor<'a>>,
    /// The targets of the rule that are API destinations.
    pub(super) targets: Vec<&'r Cursor<'a>>,
    pub(super) resources: &'r Resources<'a>,
}

/// True if the target is an API destination. Reports any other target.
pub(super) fn is_api_destination(target: &Cursor<'_>, resources: &Resources<'_>) -> bool {
    let arn = target.peek("Arn");
    let at = arn.as_ref().unwrap_or(target);
    let Some(reference) = arn.as_ref().and_then(resources::reference) else {
        let message =
            Message::new("not converted: the ARN of this target is known only after deployment");
        at.warn(message.help("add the output of: aws events list-targets-by-rule --rule RULE"));
        return false;
    };
    let is_known = resources::named(&resources.destinations, &reference, at).is_some();
    if is_known || reference.contains(":api-destination/") {
        return true;
    }
    let message = format!("not converted: {} is not an API destination", quoted(&reference));
    let help = "write a Subscription with destination.aws, or leave the target in EventBridge";
    at.warn(Message::new(message).help(help));
    false
}

impl<'a> TargetReader<'a, '_> {
    /// Converts one target into a Subscription.
    pub(super) fn subscription(&self, target: &Fields<'a>) -> Option<Translation> {
        target.accept(&["RoleArn"]);
        let id = target.required("Id")?;
        let mut to = Translation::new(target.parent());
        let rule = self.rule.name;
        let name = match self.targets.len() {
            1 => rule.to_owned(),
            _ => format!("{rule}-{}", literal(&id)?),
        };
        let name = SubscriptionName { topic: self.topic.clone(), name };
        to.name(&name, &id, Dialect::Native);
        to.set("filter", &self.filter, &self.filter_at);
        to.imply("destination.timeout", &json!(TIMEOUT));
        self.set_request(target, &mut to)?;
        set_retry(target, &mut to)?;
        set_dead_letter(target, &mut to)?;
        if let Some(state) =
            self.state.as_ref().filter(|state| state.peek_text() == Some("DISABLED"))
        {
            to.set("paused", &json!(true), state);
            let message = "the rule is disabled, so its Subscription is paused: its events become \
                           dead letters";
            state.warn(Message::new(message).help("remove the rule to ignore its events"));
        }
        Some(to)
    }

    /// Sets the fields of the Subscription that describe the request.
    fn set_request(&self, target: &Fields<'a>, to: &mut Translation) -> Option<()> {
        let parameters = section(target, "HttpParameters")?;
        let arn = target.required("Arn")?;
        let destination = found(&arn, &self.resources.destinations, "describe-api-destination")?;
        let connection_arn = destination.at.mapping(|fields| {
            fields.accept(&["ApiDestinationArn", "ApiDestinationState", "CreationTime"]);
            fields.accept(&["Name", "Description", "LastModifiedTime"]);
            let connection = fields.required("ConnectionArn");
            request::destination(fields, parameters.as_ref(), to)?;
            connection
        })??;
        let connection =
            found(&connection_arn, &self.resources.connections, "describe-connection")?;
        let secrets = Secrets { connection: connection.name, variables: &self.resources.variables };
        let connection = connection.at.mapping(|fields| connection::read(fields, &secrets))??;
        let is_get = destination.at.text_at("HttpMethod") == "GET";
        let content_type = request::parameters(parameters.as_ref(), &connection, to)?;
        if is_get {
            let inputs =
                ["Input", "InputPath", "InputTransformer"].map(|field| target.given(field));
            let members = connection.body.iter().map(|parameter| parameter.at.clone());
            let unused = inputs.into_iter().flatten().chain(members);
            let unused = unused.chain(content_type.map(|(_, at)| at));
            unused.for_each(|at| at.warn("not sent: a GET request has no body"));
        } else {
            self.set_body(target, &connection, content_type, to)?;
        }
        let (auth, at) = connection.auth?;
        to.set("destination.auth", &auth, &at);
        Some(())
    }

    /// Sets the body and its content type. Sets neither if the event is sent unchanged and no
    /// header states a content type.
    fn set_body(
        &self,
        target: &Fields<'a>,
        connection: &Connection<'_>,
        content_type: Option<(Json, Cursor<'_>)>,
        to: &mut Translation,
    ) -> Option<()> {
        let members =
            connection.body.iter().map(|parameter| (parameter.name.to_owned(), parameter.json()));
        let members: Vec<input::Member> = members.collect();
        // Read the fields, because `self.rule.name` is the logical id if the template states no
        // name.
        let rule = (self.rule.at.text_at("Name"), self.rule.at.text_at("Arn"));
        let at = target.parent();
        let body = at.result_or_error(|| Some(input::body(target, rule, &members))).ok()?;
        let body = match (body, &content_type) {
            (Some(body), _) => body,
            (None, Some(_)) => input::WHOLE_EVENT.to_owned(),
            (None, None) => return Some(()),
        };
        let fields = ["InputTransformer.InputTemplate", "InputPath", "Input"];
        let field = fields.iter().find_map(|field| at.peek(field));
        to.set("destination.bodyText", &json!(body), field.as_ref().unwrap_or(at));
        match content_type {
            Some((stated, at)) => to.set("destination.contentType", &stated, &at),
            None => to.imply("destination.contentType", &json!(CONTENT_TYPE)),
        }
        Some(())
    }
}

/// Returns the resource that the field at the cursor names. Reports a resource that no file
/// describes.
fn found<'r, 'a>(
    at: &Cursor<'a>,
    all: &'r [resources::Resource<'a>],
    command: &str,
) -> Option<&'r resources::Resource<'a>> {
    let Some(reference) = resources::reference(at) else { return refuse_deployed(at) };
    resources::named(all, &reference, at).or_else(|| {
        let name = resources::name_in(&reference).unwrap_or(&reference);
        let message = format!("no file describes {}", quoted(name));
        let help = format!("add the output of: aws events {command} --name {name}");
        at.refuse(Message::new(message).help(help))
    })
}

/// Sets the limits of retries. EventBridge counts retries, while `maxAttempts` includes the first
/// attempt.
fn set_retry(target: &Fields<'_>, to: &mut Translation) -> Option<()> {
    let limits = |fields: &Fields<'_>| {
        let attempts = fields.given("MaximumRetryAttempts");
        let attempts = attempts.map_or(Some(RETRIES_MAX), |at| at.integer(0..=RETRIES_MAX));
        let age = fields.given("MaximumEventAgeInSeconds");
        let age = age.map_or(Some(AGE_MAX_SECONDS), |at| at.integer(AGE_SECONDS));
        Some((attempts?, age?))
    };
    let policy = section(target, "RetryPolicy")?;
    let stated = policy.as_ref().map(|policy| policy.mapping(limits).flatten());
    let (retries, seconds) = stated.unwrap_or(Some((RETRIES_MAX, AGE_MAX_SECONDS)))?;
    let at = policy.as_ref().unwrap_or(target.parent());
    to.set("retry.maxAttempts", &json!(retries + 1), at);
    to.set("retry.timeToLive", &json!(format_ms(u64::from(seconds) * SECOND_MS)), at);
    to.imply("retry.retryOn", &json!([RETRIED]));
    Some(())
}

/// Sets the queue that receives dead letters.
fn set_dead_letter(target: &Fields<'_>, to: &mut Translation) -> Option<()> {
    let config = section(target, "DeadLetterConfig")?;
    let Some(arn) = config.and_then(|config| config.peek("Arn")) else { return Some(()) };
    let parts: Vec<&str> = arn.peek_text().unwrap_or_default().split(':').collect();
    let hosts = parts.get(1).and_then(|partition| hosts_of(partition));
    let (["arn", _, "sqs", region, account, name], Some(hosts)) = (parts.as_slice(), hosts) else {
        let message = "not converted: the ARN of this queue is known only after deployment";
        let help = "dead letters go to the bucket of the stack; use deadLetter.sink for another \
                    destination";
        arn.warn(Message::new(message).help(help));
        return Some(());
    };
    let sink = format!("sqs://sqs.{region}.{hosts}/{account}/{name}");
    to.set("deadLetter.sink", &json!(sink), &arn);
    let message = "dead letters in this queue have the format of lastmile";
    arn.note(Message::new(message).help("add the queue to ExtraSinkArns of the stack"));
    Some(())
}
