//! [`Program`]: one compiled template.

use std::collections::BTreeSet;

use super::error::TemplateError;
use super::expression::{Node, Tagged, Variable};
use super::lower::Lowering;
use super::syntax::Tags;

/// A compiled template, which does not depend on an event.
#[derive(Debug)]
pub(super) struct Program {
    /// The path of the field with the template, for error messages.
    pub(super) place: Box<str>,
    /// The parts of the template, in order.
    pub(super) nodes: Vec<Node>,
    /// The names of the secrets in calls of `secret` and `hmac`.
    pub(super) secrets: BTreeSet<Box<str>>,
    /// The variables that the template uses.
    pub(super) variables: BTreeSet<Variable>,
}

impl Program {
    /// Compiles the text of a template. `place` is the path of its field, for error messages.
    ///
    /// # Errors
    /// The error of the first invalid part.
    pub(super) fn compile(text: &str, place: &str) -> Result<Self, TemplateError> {
        let failed =
            |(tag, fault): (&str, super::error::Fault)| TemplateError::new(place, tag, fault.0);
        let tags = Tags::read(text).map_err(failed)?;
        let tree = tags.parse().map_err(failed)?;
        let mut lowering = Lowering::new(&tags);
        let nodes = lowering.template(&tree).map_err(failed)?;
        let Lowering { secrets, variables, .. } = lowering;
        Ok(Self { place: place.into(), nodes, secrets, variables })
    }

    /// Returns the expression if the template consists of exactly one expression, without other
    /// text.
    pub(super) fn single(&self) -> Option<&Tagged> {
        match &self.nodes[..] {
            [Node::Output(tagged)] => Some(tagged),
            _ => None,
        }
    }
}
