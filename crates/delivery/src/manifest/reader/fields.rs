//! The fields of a mapping while they are read.
//!
//! Separate from the cursor because it has state: fields that were not read are reported as unknown
//! in the end.

use std::cell::RefCell;

use super::super::findings::{Message, quoted};
use super::super::hint::hint;
use super::super::node::{Key, Node, Value};
use super::Cursor;

/// The fields of a mapping while they are read.
pub(in crate::manifest) struct Fields<'a> {
    of: Cursor<'a>,
    entries: &'a [(Key, Node)],
    asked: RefCell<Vec<&'a str>>,
}

impl<'a> Fields<'a> {
    /// The fields of this mapping, none of them read yet.
    pub(super) fn new(of: Cursor<'a>, entries: &'a [(Key, Node)]) -> Self {
        Self { of, entries, asked: RefCell::default() }
    }

    fn find(&self, name: &'static str) -> Option<&'a (Key, Node)> {
        self.asked.borrow_mut().push(name);
        self.entries.iter().find(|(key, _)| key.text == name)
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
        self.asked.borrow_mut().extend(self.entries.iter().map(|(key, _)| key.text.as_str()));
    }

    /// The field, if it is there.
    pub(in crate::manifest) fn get(&self, name: &'static str) -> Option<Cursor<'a>> {
        self.find(name).map(|(key, node)| self.of.child(key, node))
    }

    /// The field, if it is there and not `null`: exported resources have `null` for absent fields.
    pub(in crate::manifest) fn given(&self, name: &'static str) -> Option<Cursor<'a>> {
        self.get(name).filter(|cursor| !matches!(cursor.node.value, Value::Null))
    }

    /// The field; reported at the mapping where it is missing.
    pub(in crate::manifest) fn required(&self, name: &'static str) -> Option<Cursor<'a>> {
        let field = self.get(name);
        if field.is_none() {
            let missing = Cursor { field: self.of.path_to(name), ..self.of.clone() };
            missing.error(format!("{name} is missing"));
        }
        field
    }

    /// A field that is a mapping; `null` counts as absent.
    pub(in crate::manifest) fn section<T>(
        &self,
        name: &'static str,
        read: impl FnOnce(&Fields<'a>) -> T,
    ) -> Option<T> {
        let cursor = self.get(name)?;
        if cursor.is_null() { None } else { cursor.mapping(read) }
    }

    /// A cursor that reports at the key of a field, if it is there.
    pub(in crate::manifest) fn key(&self, name: &'static str) -> Option<Cursor<'a>> {
        let (key, node) = self.find(name)?;
        Some(Cursor { position: key.position(self.of.position.file), ..self.of.child(key, node) })
    }

    pub(super) fn report_unknown(&self) {
        let mut known = self.asked.take();
        known.sort_unstable();
        known.dedup();
        for (key, node) in
            self.entries.iter().filter(|(key, _)| !known.contains(&key.text.as_str()))
        {
            let cursor = Cursor {
                position: key.position(self.of.position.file),
                ..self.of.child(key, node)
            };
            let message = format!("unknown field {}", quoted(&key.text));
            let message = Message::new(message).help(hint(&key.text, &known, &known));
            self.of.findings.add(self.of.unknown, cursor.position, &cursor.field, message);
        }
    }
}
