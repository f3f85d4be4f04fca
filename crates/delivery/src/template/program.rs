//! One compiled template.

use std::collections::BTreeSet;

use super::error::TemplateError;
use super::expression::{Node, Tagged, Variable};
use super::lower::Lowering;
use super::syntax::Tags;

/// A template that is ready to be rendered; nothing in it refers to an event.
#[derive(Debug)]
pub(super) struct Program {
    /// The field that holds the template.
    pub(super) place: Box<str>,
    /// Its parts.
    pub(super) nodes: Vec<Node>,
    /// The secrets that it names.
    pub(super) secrets: BTreeSet<Box<str>>,
    /// The variables that it reads.
    pub(super) variables: BTreeSet<Variable>,
}

impl Program {
    /// Compiles a text.
    ///
    /// # Errors
    /// The first part that is not a template.
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

    /// The expression, if the template is nothing else.
    pub(super) fn single(&self) -> Option<&Tagged> {
        match &self.nodes[..] {
            [Node::Output(tagged)] => Some(tagged),
            _ => None,
        }
    }
}
