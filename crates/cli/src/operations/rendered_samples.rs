//! Renders the templates of subscriptions with the samples of their topics, before anything is
//! deployed.
//!
//! Separate from other lints, because these need an event. A sample is only rendered for
//! subscriptions that it matches.

use std::sync::Arc;

use delivery::event::Element;
use delivery::subscription::Subscription;
use delivery::subscription::catalogue::Catalogue;
use delivery::subscription::name::NameRange;
use delivery::subscription::topic_settings::TopicSettings;

use crate::operations::event_report::elements;
use crate::operations::rendered_request::rendered_request;
use crate::operations::writable::Problem;

/// The field that a finding names if the template error names none.
const TEMPLATES: &str = "body";

/// Renders a sample with the templates of a subscription. Returns the first problem, and the name
/// of its field.
pub(crate) fn unrendered(
    subscription: &Subscription,
    catalogue: &Catalogue,
    now_ms: u64,
) -> Option<(&'static str, Problem)> {
    if !subscription.destination.has_templates() {
        return None;
    }
    let name = &subscription.name;
    let sample: Arc<str> = catalogue
        .topic(&name.topic)
        .map(|topic| &topic.settings)
        .and_then(TopicSettings::sample_text)?
        .into();
    let refused = |message: String, help: &str| Problem::refused(message, help.to_owned());
    elements(catalogue, &name.topic, &sample).iter().find_map(|element| match element {
        Element::Malformed { why, .. } => {
            let message = format!(
                "{name}: the sample of {} is not a valid event of the topic: {why}",
                name.topic
            );
            Some((TEMPLATES, refused(message, "correct spec.sample of the Topic")))
        }
        Element::Event(event) => {
            // The range contains only the name of this subscription, so the filters of others are
            // not evaluated.
            let own =
                NameRange { from: name.name.clone(), before: Some(format!("{}\0", name.name)) };
            catalogue.matching(&name.topic, &own, event, now_ms).next()?;
            let problem = rendered_request(subscription, event)?.err()?;
            let message = format!("{name}: the sample of the topic cannot be sent: {problem}");
            let field = field_of(&problem);
            Some((field, refused(message, "correct the template, or spec.sample of the Topic")))
        }
    })
}

/// Returns the first field that a template error names.
fn field_of(problem: &str) -> &'static str {
    let fields = ["bodyText", "body", "query", "headers", "url"];
    let place = problem.strip_prefix("destination.").unwrap_or_default();
    fields.into_iter().find(|field| place.starts_with(field)).unwrap_or(TEMPLATES)
}
