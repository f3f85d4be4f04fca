//! The fields of a mapping while they are read.
//!
//! Separate from the cursor because it has state: fields that were not read are reported as unknown
//! in the end.

use std::cell::RefCell;

use super::super::findings::{Message, Severity, quoted};
use super::super::hint::hint;
use super::super::node::{Key, Node, Value};
use super::Cursor;

/// The fields of a mapping while they are read.
pub(in crate::manifest) struct Fields<'a> {
    of: Cursor<'a>,
    entries: &'a [(Key, Node)],
    /// The mapping that has the fields which are missing here.
    base: Option<Cursor<'a>>,
    asked: RefCell<Vec<&'a str>>,
}

impl<'a> Fields<'a> {
    /// The fields of this mapping, none of them read yet.
    pub(super) fn new(
        of: Cursor<'a>,
        entries: &'a [(Key, Node)],
        base: Option<Cursor<'a>>,
    ) -> Self {
        Self { of, entries, base, asked: RefCell::default() }
    }

    fn find(&self, name: &'static str) -> Option<&'a (Key, Node)> {
        self.asked.borrow_mut().push(name);
        self.entries.iter().find(|(key, _)| key.value == name)
    }

    /// The mapping itself.
    pub(in crate::manifest) fn parent(&self) -> &Cursor<'a> {
        &self.of
    }

    /// Marks these fields as known: they are read elsewhere.
    pub(in crate::manifest) fn accept(&self, names: &[&'static str]) {
        self.asked.borrow_mut().extend(names);
    }

    /// Marks every field as known: they are not checked.
    pub(in crate::manifest) fn accept_rest(&self) {
        self.asked.borrow_mut().extend(self.entries.iter().map(|(key, _)| key.value.as_str()));
    }

    /// The field of this mapping itself, if it is there.
    pub(in crate::manifest) fn own(&self, name: &'static str) -> Option<Cursor<'a>> {
        self.find(name).map(|(key, node)| self.of.child(key, node))
    }

    /// The field of the base, if it is there and not `null`.
    pub(in crate::manifest) fn of_base(&self, name: &str) -> Option<Cursor<'a>> {
        self.base.as_ref()?.peek(name).filter(|cursor| !cursor.is_null())
    }

    /// The field, if it is there.
    pub(in crate::manifest) fn get(&self, name: &'static str) -> Option<Cursor<'a>> {
        self.own(name).or_else(|| self.of_base(name))
    }

    /// The field, if it is there and not `null`: exported resources have `null` for absent fields.
    pub(in crate::manifest) fn given(&self, name: &'static str) -> Option<Cursor<'a>> {
        self.own(name).filter(|cursor| !cursor.is_null()).or_else(|| self.of_base(name))
    }

    /// The field of this mapping itself; reported at the mapping where it is missing.
    pub(in crate::manifest) fn required(&self, name: &'static str) -> Option<Cursor<'a>> {
        let field = self.own(name);
        if field.is_none() {
            let missing = Cursor { field: self.of.path_to(name), ..self.of.clone() };
            missing.error(format!("{name} is missing"));
        }
        field
    }

    /// The field as `read` reads it, if it is there.
    pub(in crate::manifest) fn read<T>(
        &self,
        name: &'static str,
        read: impl FnOnce(&Cursor<'a>) -> Option<T>,
    ) -> Option<T> {
        self.get(name).and_then(|cursor| read(&cursor))
    }

    /// Whether the field is `true`.
    pub(in crate::manifest) fn is_true(&self, name: &'static str) -> bool {
        self.given(name).and_then(|cursor| cursor.boolean()).unwrap_or(false)
    }

    /// A field that is a mapping; `null` counts as absent.
    pub(in crate::manifest) fn section<T>(
        &self,
        name: &'static str,
        read: impl FnOnce(&Fields<'a>) -> T,
    ) -> Option<T> {
        self.given(name)?.mapping(read)
    }

    /// The same, but fields that are missing in it are those of the same field of the base.
    pub(in crate::manifest) fn merged_section<T>(
        &self,
        name: &'static str,
        read: impl FnOnce(&Fields<'a>) -> T,
    ) -> Option<T> {
        self.given(name)?.mapping_over(self.of_base(name), read)
    }

    /// A cursor that reports at the key of a field, if it is there.
    pub(in crate::manifest) fn key(&self, name: &'static str) -> Option<Cursor<'a>> {
        let (key, node) = self.find(name)?;
        Some(Cursor { position: key.position(self.of.position.file), ..self.of.child(key, node) })
    }

    /// The same, unless the field is `null`.
    pub(in crate::manifest) fn given_key(&self, name: &'static str) -> Option<Cursor<'a>> {
        self.given(name).and_then(|_| self.key(name))
    }

    pub(super) fn report_unknown(&self) {
        let mut known = self.asked.take();
        known.sort_unstable();
        known.dedup();
        // Exports of other formats have `null` for whatever a resource does not state.
        let is_absent =
            |node: &Node| self.of.unknown == Severity::Warning && matches!(node.value, Value::Null);
        let is_unknown =
            |(key, node): &&(Key, Node)| !known.contains(&key.value.as_str()) && !is_absent(node);
        for (key, _) in self.entries.iter().filter(is_unknown) {
            let (position, field) =
                (key.position(self.of.position.file), self.of.path_to(&key.value));
            let at = Cursor { position, field, ..self.of.clone() };
            if key.value.starts_with("//") || key.value.starts_with("/*") {
                // Whatever it hides, a filter perhaps, would be missing.
                let message =
                    "a comment of JSON in YAML, which reads it as a part of the name behind it";
                at.error(
                    Message::new(message).help("a file of its own, named .json, or # comments"),
                );
                continue;
            }
            let message = format!("unknown field {}", quoted(&key.value));
            at.report(self.of.unknown, Message::new(message).help(hint(&key.value, &known)));
        }
    }
}
