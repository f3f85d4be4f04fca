//! Deployments in a template, which Bicep makes of modules: each has a template of its own.
//!
//! Separate because the expressions in it mean other parameters and variables where it says so.

use std::cell::{Cell, RefCell};

use super::super::super::node::{Key, Node, Value};
use super::super::template::DEPLOYMENTS;
use super::{Evaluation, member};

/// The fields of such a deployment that are read, beside its properties.
pub(super) const FIELDS: [&str; 4] = ["condition", "copy", "resourceGroup", "subscriptionId"];
/// The member of a parameter that a deployment passes.
pub(super) const PASSED: &str = "value";

/// The template in a resource, if it is a deployment that has one.
pub(super) fn template(resource: &Value) -> Option<&Value> {
    let text = member(resource, "type").map(|kind| &kind.value);
    let is_deployment =
        matches!(text, Some(Value::Text(kind)) if kind.eq_ignore_ascii_case(DEPLOYMENTS));
    let properties = member(resource, "properties").filter(|_| is_deployment)?;
    member(&properties.value, "template").map(|template| &template.value)
}

impl Evaluation<'_> {
    /// The properties of a nested deployment. Its template has parameters and variables of its own where it says so
    /// (`scope: inner`), otherwise those around it.
    pub(super) fn deployment(&self, resource: &Value, properties: &Node) -> Node {
        let Value::Map(entries) = &properties.value else { return properties.clone() };
        let options = member(&properties.value, "expressionEvaluationOptions");
        let scope = options.and_then(|options| member(&options.value, "scope"));
        let is_inner = scope.is_some_and(
            |scope| matches!(&scope.value, Value::Text(text) if text.eq_ignore_ascii_case("inner")),
        );
        let fields = entries.iter().map(|(key, of)| {
            let value = match key.value.as_str() {
                "template" if is_inner => self.inner(resource, properties, of),
                "template" => self.nested(of),
                _ => self.node(of, 3),
            };
            (key.clone(), value)
        });
        properties.with(Value::Map(fields.collect()))
    }

    /// A template with the expressions of its resources evaluated.
    fn nested(&self, template: &Node) -> Node {
        let Value::Map(entries) = &template.value else { return template.clone() };
        let fields = entries.iter().map(|(key, of)| {
            let is_resources = key.value == "resources";
            (key.clone(), if is_resources { self.resources(of) } else { of.clone() })
        });
        template.with(Value::Map(fields.collect()))
    }

    /// The same with its own parameters and variables, and with those that the deployment passes.
    fn inner(&self, resource: &Value, properties: &Node, template: &Node) -> Node {
        let passed = member(&properties.value, "parameters").map(|passed| self.node(passed, 3));
        let parameter = |(key, of): &(Key, Node)| {
            let passed = passed.as_ref().and_then(|passed| member(&passed.value, &key.value));
            let value = passed.and_then(|passed| member(&passed.value, PASSED));
            let entry = |value: &Node| (key.with(PASSED.to_owned()), value.clone());
            let passed = value.map(|value| value.with(Value::Map(vec![entry(value)])));
            (key.clone(), passed.unwrap_or_else(|| of.clone()))
        };
        let parameters = member(&template.value, "parameters").and_then(|parameters| {
            let Value::Map(entries) = &parameters.value else { return None };
            Some(parameters.with(Value::Map(entries.iter().map(parameter).collect())))
        });
        let text = |field, place: String| match member(resource, field).map(|of| self.node(of, 3)) {
            Some(Node { value: Value::Text(text), .. }) => {
                place.replace(&format!("{{{}}}", field.trim_end_matches("Id")), &text)
            }
            Some(_) | None => place,
        };
        let inner = Evaluation {
            parameters: parameters.as_ref(),
            variables: member(&template.value, "variables"),
            place: text("subscriptionId", text("resourceGroup", self.place.clone())),
            steps: self.steps.clone(),
            defaults: RefCell::default(),
            is_noted: Cell::default(),
        };
        let evaluated = inner.nested(template);
        self.steps.set(inner.steps.get());
        self.defaults.borrow_mut().extend(inner.defaults.into_inner());
        evaluated
    }
}
