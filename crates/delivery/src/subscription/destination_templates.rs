//! Lists the parts of a destination that are templates.

use crate::subscription::destination::Destination;
use crate::subscription::header::Value;
use crate::subscription::secret::SecretName;
use crate::subscription::templates::Templated;
use crate::template::TextTemplate;

impl Destination {
    /// Lists the names of secrets that templates use, as a value or to sign.
    pub fn template_secrets(&self) -> impl Iterator<Item = &SecretName> {
        self.confidential().templates.into_iter()
    }

    /// Returns true if any part of a request is rendered from a template.
    #[must_use]
    pub fn has_templates(&self) -> bool {
        self.has_body()
            || self.template_headers().next().is_some()
            || !self.query.is_empty()
            || self.url.path.is_some()
            || self.aws.as_ref().is_some_and(|aws| aws.reads_event())
    }

    /// Returns true if a template is the body, in place of the event.
    #[must_use]
    pub fn has_body(&self) -> bool {
        self.body.is_some() || self.body_text.is_some()
    }

    /// Lists the templates that are values of headers.
    pub(super) fn template_headers(&self) -> impl Iterator<Item = &Templated<TextTemplate>> {
        self.headers.iter().filter_map(|header| match &header.value {
            Value::Template(template) => Some(template),
            Value::Static(_) | Value::Concealed(_) | Value::Path(_) | Value::Secret(_) => None,
        })
    }

    /// Returns true if a template uses `event`, which does not exist if the subscription batches.
    #[must_use]
    pub fn reads_event(&self) -> bool {
        let texts = self
            .template_headers()
            .chain(&self.body_text)
            .chain(self.query.iter().map(|parameter| &parameter.value));
        self.body.as_ref().is_some_and(|body| body.template.reads_event())
            || self.url.path.as_ref().is_some_and(|path| path.template.reads_event())
            || texts.into_iter().any(|text| text.template.reads_event())
    }
}
