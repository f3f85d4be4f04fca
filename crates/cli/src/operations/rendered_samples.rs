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

/// The field of templates for errors that name no field.
const TEMPLATES: &str = "body";

/// The first problem of rendering a sample with the templates of a subscription, with the name of
/// the field.
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
        .map(|of| &of.settings)
        .and_then(TopicSettings::sample_text)?
        .into();
    let refused = |message: String, help: &str| Problem::refused(message, help.to_owned());
    elements(catalogue, &name.topic, &sample).iter().find_map(|element| match element {
        Element::Malformed { why, .. } => {
            let message = format!("{name}: the sample of {} is no event of it: {why}", name.topic);
            Some((TEMPLATES, refused(message, "correct spec.sample of the Topic")))
        }
        Element::Event(event) => {
            // The range contains only this name, so the filters of other subscriptions are not
            // evaluated.
            let own =
                NameRange { from: name.name.clone(), before: Some(format!("{}\0", name.name)) };
            catalogue.matching(&name.topic, &own, event, now_ms).next()?;
            let problem = rendered_request(subscription, event)?.err()?;
            let message = format!("{name}: the sample of its topic cannot be sent: {problem}");
            let field = field_of(&problem);
            Some((field, refused(message, "correct the template, or spec.sample of the Topic")))
        }
    })
}

/// The first field that a template error names.
fn field_of(problem: &str) -> &'static str {
    let fields = ["bodyText", "body", "query", "headers", "url"];
    let place = problem.strip_prefix("destination.").unwrap_or_default();
    fields.into_iter().find(|field| place.starts_with(field)).unwrap_or(TEMPLATES)
}
